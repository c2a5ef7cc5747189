package compact

import "github.com/arche-replicate/arche-replicate/delta"

// This file guesses the baselines of an entry from those of other entries. Most entries of a packet
// have the same ones, and those of a slot are mostly as old as in the packet before. Where packets
// got lost, a few different ones alternate.

// A Name names the baselines of an entry.
type Name struct {
	A1                  delta.Tick
	Span, Third, Fourth delta.Tick // ages of the other baselines, from A1; 0: there is none, nor a further one
}

// mostRecent is the number of different names of a packet that are guessed again.
const mostRecent = 4

// names have the names of a packet's entries so far.
type names struct {
	ref    delta.Tick // tick of the model
	last   [chainStates]Name
	named  [chainStates]bool // there is a last name, of an entry with that chain state
	likely Name              // of the slot in hand, if it is carried again
	recent [mostRecent]Name  // different ones, the last one first; before the first one: the reference tick alone
	count  int               // of recent
}

// begin begins a packet, given the tick of its model.
func (n *names) begin(ref delta.Tick) {
	n.ref, n.recent[0] = ref, Name{A1: ref}
}

// first returns the name that is guessed first for an entry with a chain state, and the decision
// whether it is that.
func (n *names) first(chain int) (guess *Name, context int) {
	switch {
	case n.named[chain] && chain == ChainRepeated && n.last[chain] != n.likely:
		return &n.last[chain], headName + chainStates
	case n.named[chain]:
		return &n.last[chain], headName + chain
	case chain == ChainRepeated:
		return &n.likely, headName + chainStates + 1 + chain
	}
	return &n.recent[0], headName + chainStates + 1 + chain
}

// guesses are names with the decision whether an entry has them, in their order.
type guesses struct {
	list  [1 + mostRecent]guess
	count int
}

type guess struct {
	name    Name
	context int
}

// others returns the further guesses after the first one was wrong.
func (n *names) others(chain int, first Name) (g guesses) {
	likely := first
	if chain == ChainRepeated && n.likely != first {
		likely = n.likely
		g.add(likely, headOwn)
	}
	context := headRecent + mostRecent*chain
	for _, name := range n.recent[:n.count] {
		if name != first && name != likely {
			g.add(name, context)
			context++
		}
	}
	return g
}

func (g *guesses) add(name Name, context int) {
	g.list[g.count] = guess{name, context}
	g.count++
}

// use notes the name of an entry.
func (n *names) use(chain int, name *Name) {
	n.last[chain], n.named[chain] = *name, true
	if n.count > 0 && n.recent[0] == *name {
		return
	}
	i := 0
	for i < n.count && n.recent[i] != *name {
		i++
	}
	if i == n.count {
		n.count = min(i+1, mostRecent)
	}
	copy(n.recent[1:], n.recent[:min(i, mostRecent-1)])
	n.recent[0] = *name
}

// putName writes the name of an entry's baselines.
func (x *Writer) putName(c *delta.Compact, chain int, name *Name) {
	x.State.Named(x.Walk.Next-1, name)
	n := &x.Walk.names
	first, context := n.first(chain)
	same := *name == *first
	c.PutHead(&x.E, context, same)
	if !same {
		x.putOther(c, chain, name, *first)
	}
	n.use(chain, name)
}

// putOther writes a name other than the first guess.
func (x *Writer) putOther(c *delta.Compact, chain int, name *Name, first Name) {
	others := x.Walk.names.others(chain, first)
	for _, g := range others.list[:others.count] {
		same := *name == g.name
		c.PutHead(&x.E, g.context, same)
		if same {
			return
		}
	}
	ref := x.Walk.names.ref
	c.PutHead(&x.E, headFirst+chain, name.A1 == ref)
	if name.A1 != ref {
		differ := int32(name.A1 - ref)
		c.PutHead(&x.E, headNewer, differ > 0)
		if differ < 0 {
			differ = -differ
		}
		c.PutHeadLength(&x.E, headTicks, tickLengths, uint64(differ-1), tickBits)
	}
	c.PutHead(&x.E, headTwo+chain, name.Span != 0)
	if name.Span != 0 {
		x.putTree(c, headSpan, uint(name.Span-1), spanBits)
		x.putTree(c, headThird, uint(name.Third), nearBits)
		if name.Third != 0 {
			x.putTree(c, headFourth, uint(name.Fourth), nearBits)
		}
	}
}

// GetName reads the name of the baselines of an entry.
func (x *Reader) GetName(chain int) Name {
	n := &x.Walk.names
	first, context := n.first(chain)
	name := *first
	if !x.Coder.GetHead(&x.D, context) {
		name = x.getOther(chain, name)
	}
	n.use(chain, &name)
	return name
}

// getOther reads what putOther wrote.
func (x *Reader) getOther(chain int, first Name) Name {
	c, d := x.Coder, &x.D
	others := x.Walk.names.others(chain, first)
	for _, g := range others.list[:others.count] {
		if c.GetHead(d, g.context) {
			return g.name
		}
	}
	name := Name{A1: x.Walk.names.ref}
	if !c.GetHead(d, headFirst+chain) {
		newer := c.GetHead(d, headNewer)
		differ := delta.Tick(c.GetHeadLength(d, headTicks, tickLengths, tickBits)) + 1
		if newer {
			name.A1 += differ
		} else {
			name.A1 -= differ
		}
	}
	if c.GetHead(d, headTwo+chain) {
		name.Span = delta.Tick(x.getTree(headSpan, spanBits)) + 1
		name.Third = delta.Tick(x.getTree(headThird, nearBits))
		if name.Third != 0 {
			name.Fourth = delta.Tick(x.getTree(headFourth, nearBits))
		}
	}
	return name
}

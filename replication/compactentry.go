package replication

import (
	"github.com/arche-replicate/arche-replicate/delta"
	"github.com/arche-replicate/arche-replicate/replication/internal/wire"
)

// How entries are written: what compacthead.go says, and rows.

// putEnd ends the entries.
func (x *compactWriter) putEnd(c *delta.Compact) {
	w := &x.walk
	if !w.begun && len(w.before) > 0 {
		c.PutHead(&x.e, headJump, false)
	}
	room := w.room()
	if room >= 0 {
		c.PutHead(&x.e, w.otherContext(room), true)
	}
	if room != 0 {
		c.PutHead(&x.e, w.endContext(room), true)
	}
	w.end(x.state)
}

// putSlot says which slot the next entry is of.
func (x *compactWriter) putSlot(c *delta.Compact, slot int) (origin int) {
	w := &x.walk
	if !w.begun {
		w.begun = true
		if len(w.before) > 0 {
			jump := len(w.before) > maxPassed && int(w.before[maxPassed].slot) < slot
			c.PutHead(&x.e, headJump, jump)
			if jump {
				x.e.PutExpGolomb(uint64(slot), jumpBits)
				w.jump(slot)
				if w.room() == 0 {
					return w.pass(x.state, true)
				}
				w.found(x.state, slot)
				return originNew
			}
		}
	}
	for {
		room := w.room()
		if room >= 0 {
			other := slot-w.next < room
			c.PutHead(&x.e, w.otherContext(room), other)
			if !other {
				again := slot == w.next+room
				c.PutHead(&x.e, w.againContext(), again)
				if origin = w.pass(x.state, again); again {
					return origin
				}
				continue
			}
		}
		c.PutHead(&x.e, w.endContext(room), false)
		context, width := w.gapWidth(room)
		c.PutHeadLength(&x.e, context, gapLengths, uint64(slot-w.next), width)
		w.found(x.state, slot)
		return originNew
	}
}

// maxPassed is how many listed slots are gone through at the beginning of a packet, rather
// than left out at once.
const maxPassed = 12

// put writes an entry.
func (x *compactWriter) put(c *compactCoder, slot int, entry *compactEntry) {
	origin := x.putSlot(c.coder, slot)
	steps := max(int(entry.kind)-1, 0) // entryNamed is none of them
	for i := range kindSteps {
		more := steps > i
		c.coder.PutHead(&x.e, headKind+origin*kindSteps+i, more)
		if !more {
			break
		}
	}
	switch entry.kind {
	case wire.EntryUpdate:
		x.putName(c.coder, origin, &entry.name)
	case wire.EntrySetChange:
		x.putName(c.coder, origin, &entry.name)
		x.putSet(&entry.set, &entry.ref)
	case wire.EntryFull:
		x.putWhole(c.coder, entry)
	case wire.EntryPart:
		for _, v := range entry.part {
			x.e.PutExpGolomb(v, partOrder)
		}
		for _, b := range entry.payload {
			x.e.PutBits(uint64(b), 8)
		}
		return
	default:
		return
	}
	c.coder.Entity(origin == originAgain)
	for i := range c.rows {
		r := &c.rows[i]
		c.coder.EncodeRow(&x.e, r.component, r.cur, &r.past)
	}
}

// putName names the baselines.
func (x *compactWriter) putName(c *delta.Compact, origin int, name *compactName) {
	x.state.named(x.walk.next-1, name)
	last := &x.walk.names[origin]
	same := *name == *last
	c.PutHead(&x.e, x.walk.nameContext(origin), same)
	if same {
		return
	}
	if origin == originAgain && *last != x.walk.own {
		own := *name == x.walk.own
		c.PutHead(&x.e, headOwn, own)
		if own {
			*last = *name
			return
		}
	}
	*last = *name
	atRef := name.a1 == x.walk.ref
	c.PutHead(&x.e, headFirst+origin, atRef)
	if !atRef {
		differ := int32(name.a1 - x.walk.ref)
		c.PutHead(&x.e, headNewer, differ > 0)
		if differ < 0 {
			differ = -differ
		}
		c.PutHeadLength(&x.e, headTicks, tickLengths, uint64(differ-1), tickBits)
	}
	c.PutHead(&x.e, headTwo+origin, name.span != 0)
	if name.span != 0 {
		x.putTree(c, headSpan, uint(name.span-1), delta.SpanBits)
		x.putTree(c, headThird, uint(name.third), thirdBits)
	}
}

// putTree codes a number of n bits, from the highest on, each by a decision for those before it.
func (x *compactWriter) putTree(c *delta.Compact, tree int, v, n uint) {
	node := uint(1)
	for i := n; i > 0; i-- {
		bit := v >> (i - 1) & 1
		c.PutHead(&x.e, tree+int(node), bit != 0)
		node = node<<1 | bit
	}
}

// putWhole writes the generation and component set of an entity without baseline.
func (x *compactWriter) putWhole(c *delta.Compact, entry *compactEntry) {
	c.PutHeadLength(&x.e, headLife, lifeLengths, entry.part[0], 16)
	same := entry.set == x.walk.set
	c.PutHead(&x.e, headSet, same)
	if !same {
		x.putSet(&entry.set, &x.walk.set)
		x.walk.set = entry.set
	}
}

// putSet writes how a component set differs from another one.
func (x *compactWriter) putSet(set, ref *delta.Set) {
	diff := *set
	for c := ref.Next(0); c >= 0; c = ref.Next(c + 1) {
		diff.Toggle(c)
	}
	count := 0
	for c := diff.Next(0); c >= 0; c = diff.Next(c + 1) {
		count++
	}
	x.e.PutExpGolomb(uint64(count), 0)
	next := 0
	for c := diff.Next(0); c >= 0; c = diff.Next(c + 1) {
		x.e.PutExpGolomb(uint64(c-next), 0)
		next = c + 1
	}
}

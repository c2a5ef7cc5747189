// Package compact is the entry format of the coding Compact and the models that both ends adapt to
// what a session carries. The server's side takes rows from the snapshot and writes entries with a
// range coder ([Coder], [Writer]); the client's side reads them ([Reader]). Package sender calls
// the one, package receive the other, and package encode counts what entries cost.
package compact

import (
	"github.com/arche-replicate/arche-replicate/delta"
	"github.com/arche-replicate/arche-replicate/replication/internal/wire"
)

// This file writes entries: the head, as head.go describes it, and then the rows.

// PutEnd ends the entries.
func (x *Writer) PutEnd(c *delta.Compact) {
	w := &x.Walk
	if !w.begun && len(w.before) > 0 {
		c.PutHead(&x.E, headSkip, false)
	}
	room := w.room()
	if room >= 0 {
		c.PutHead(&x.E, w.otherContext(room), true)
	}
	if room != 0 {
		c.PutHead(&x.E, w.endContext(room), true)
	}
	w.end(x.State)
}

// PutSlot writes the slot of the next entry and returns its chain state.
func (x *Writer) PutSlot(c *delta.Compact, slot int) (chain int) {
	w := &x.Walk
	if !w.begun {
		w.begun = true
		if len(w.before) > 0 {
			skip := len(w.before) > maxPassed && int(w.before[maxPassed].Slot) < slot
			c.PutHead(&x.E, headSkip, skip)
			if skip {
				x.E.PutExpGolomb(uint64(slot), skipBits)
				w.skip(slot)
				if w.room() == 0 {
					return w.pass(x.State, true)
				}
				w.found(x.State, slot)
				return ChainNew
			}
		}
	}
	for {
		room := w.room()
		if room >= 0 {
			other := slot-w.Next < room
			c.PutHead(&x.E, w.otherContext(room), other)
			if !other {
				repeated := slot == w.Next+room
				c.PutHead(&x.E, w.repeatedContext(), repeated)
				if chain = w.pass(x.State, repeated); repeated {
					return chain
				}
				continue
			}
		}
		c.PutHead(&x.E, w.endContext(room), false)
		context, width := w.gapWidth(room)
		c.PutHeadLength(&x.E, context, gapLengths, uint64(slot-w.Next), width)
		w.found(x.State, slot)
		return ChainNew
	}
}

// maxPassed is how many listed slots a packet passes one by one before its first entry. To pass
// more, it skips to the slot by number.
const maxPassed = 12

// Put writes an entry.
func (x *Writer) Put(c *Coder, slot int, entry *Entry) {
	chain := x.PutSlot(c.Coder, slot)
	steps := max(int(entry.Kind)-1, 0) // an EntryNamed has none
	for i := range KindSteps {
		more := steps > i
		c.Coder.PutHead(&x.E, HeadKind+chain*KindSteps+i, more)
		if !more {
			break
		}
	}
	switch entry.Kind {
	case wire.EntryUpdate:
		x.putName(c.Coder, chain, &entry.Name)
	case wire.EntrySetChange:
		x.putName(c.Coder, chain, &entry.Name)
		x.putSet(&entry.Set, &entry.ref)
	case wire.EntryFull:
		x.putFull(c.Coder, entry)
	case wire.EntryPart:
		for _, v := range entry.Part {
			x.E.PutExpGolomb(v, wire.PartOrder)
		}
		for _, b := range entry.Payload {
			x.E.PutBits(uint64(b), 8)
		}
		return
	default:
		c.Coder.PutHead(&x.E, HeadLeft, entry.left)
		return
	}
	c.Coder.Entity(chain == ChainRepeated)
	for i := range c.Rows {
		r := &c.Rows[i]
		c.Coder.EncodeRow(&x.E, r.Component, r.Cur, &r.past)
	}
}

// putTree codes a number of n bits from the highest down. The bits before it select the decision of
// each bit.
func (x *Writer) putTree(c *delta.Compact, tree int, v, n uint) {
	node := uint(1)
	for i := n; i > 0; i-- {
		bit := v >> (i - 1) & 1
		c.PutHead(&x.E, tree+int(node), bit != 0)
		node = node<<1 | bit
	}
}

// putFull writes the generation and component set of an entity without baseline.
func (x *Writer) putFull(c *delta.Compact, entry *Entry) {
	c.PutHeadLength(&x.E, HeadLife, LifeLengths, entry.Part[0], 16)
	same := entry.Set == x.Walk.Set
	c.PutHead(&x.E, HeadSet, same)
	if !same {
		x.putSet(&entry.Set, &x.Walk.Set)
		x.Walk.Set = entry.Set
	}
}

// putSet writes how a component set differs from another one.
func (x *Writer) putSet(set, ref *wire.ComponentSet) {
	diff := *set
	for c := range ref.All() {
		diff.Toggle(c)
	}
	count := 0
	for range diff.All() {
		count++
	}
	x.E.PutExpGolomb(uint64(count), 0)
	next := 0
	for c := range diff.All() {
		x.E.PutExpGolomb(uint64(c-next), 0)
		next = c + 1
	}
}

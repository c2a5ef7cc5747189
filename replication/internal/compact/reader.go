package compact

import (
	"github.com/arche-replicate/arche-replicate/delta"
	"github.com/arche-replicate/arche-replicate/replication/internal/schema"
	"github.com/arche-replicate/arche-replicate/replication/internal/wire"
)

// A Reader reads the state packets of a session with the coding Compact.
type Reader struct {
	Coder *delta.Compact
	Held  ModelStore
	Spare *State // of the packet that is being read
	D     delta.RangeDecoder
	Walk  Walk
}

// NewReader returns a reader without models.
func NewReader(s *schema.Schema) *Reader {
	return &Reader{Coder: delta.NewCompact(s.Layout), Spare: new(State)}
}

// Finish returns an error if the packet does not end where its entries do.
func (x *Reader) Finish() error {
	if x.D.Finish() != nil {
		return wire.ErrMalformed
	}
	return nil
}

// GetSlot reads the slot of the next entry, after which Walk.Next is the slot after it, and returns
// its chain state; or it finds the end of the entries. It returns false if the packet is malformed.
func (x *Reader) GetSlot(limit int) (chain int, end, ok bool) {
	w, c, s := &x.Walk, x.Coder, x.Spare
	if !w.begun {
		w.begun = true
		if len(w.before) > 0 && c.GetHead(&x.D, headSkip) {
			slot := x.D.GetExpGolomb(skipBits)
			if slot >= uint64(limit) {
				return 0, false, false
			}
			w.skip(int(slot))
			if w.room() == 0 {
				return w.pass(s, true), false, true
			}
			w.found(s, int(slot))
			return ChainNew, false, true
		}
	}
	for {
		room := w.room()
		if room >= 0 && !c.GetHead(&x.D, w.otherContext(room)) {
			repeated := c.GetHead(&x.D, w.repeatedContext())
			if chain = w.pass(s, repeated); repeated {
				return chain, false, true
			}
			continue
		}
		if room == 0 || c.GetHead(&x.D, w.endContext(room)) {
			w.end(s)
			return 0, true, true
		}
		context, width := w.gapWidth(room)
		gap := int(c.GetHeadLength(&x.D, context, gapLengths, width))
		if room > 0 && gap >= room || gap >= limit-w.Next {
			return 0, false, false
		}
		w.found(s, w.Next+gap)
		return ChainNew, false, true
	}
}

// getTree reads a number that putTree wrote.
func (x *Reader) getTree(tree int, n uint) uint {
	node := uint(1)
	for range n {
		bit := toInt(x.Coder.GetHead(&x.D, tree+int(node)))
		node = node<<1 | uint(bit)
	}
	return node - 1<<n
}

// GetSet reads the difference of a component set to ref, for a schema of n components.
func (x *Reader) GetSet(ref *wire.ComponentSet, n int) wire.ComponentSet {
	s := *ref
	next := uint64(0)
	for count := x.D.GetExpGolomb(0); count > 0 && x.D.Err() == nil; count-- {
		gap := x.D.GetExpGolomb(0)
		if gap >= uint64(n) || next+gap >= uint64(n) {
			x.D.Fail()
			return s
		}
		s.Toggle(int(next + gap))
		next += gap + 1
	}
	return s
}

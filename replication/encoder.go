package replication

import (
	"github.com/arche-replicate/arche-replicate/bitbuf"
	"github.com/arche-replicate/arche-replicate/delta"
)

// entryKind is the kind of an entry in a state packet, written in unary: the most
// frequent is the shortest.
type entryKind uint8

const (
	entryUpdate      entryKind = iota // against a baseline, same component set
	entryRestructure                  // against a baseline, other component set
	entryWhole                        // without baseline, with the generation
	entryDespawn                      // the slot is empty
	entryPart                         // a part of a whole that is larger than a packet
	lastEntryKind    = entryPart
)

const (
	gapOrderBits    = 4 // in a state packet: the order of the Rice code of slot gaps
	generationOrder = 4 // of the exp-Golomb code of generations
	maxEntityBits   = 32 << 10 * 8
)

// An encoder writes the rows of an entity as a run of bits, which depends on the
// entity and its baselines only, not on the peer or packet.
type encoder struct {
	server *Server
	packed *delta.Packed
	w      bitbuf.Writer
	buf    []byte
}

func (e *encoder) init(s *Server) {
	e.server = s
	e.packed = delta.NewPacked(s.schema.layout)
	e.buf = make([]byte, 4<<10)
}

// begin prepares for a run of at most the given bytes.
func (e *encoder) begin(size int) {
	if len(e.buf) < size {
		e.buf = make([]byte, size)
	}
	e.w.Reset(e.buf)
}

// worst returns a bound on the bytes of an entity's run.
func (e *encoder) worst(slot int) int {
	return 3*e.server.slots.info[slot].width/8 + 4<<10
}

// run returns what was written since begin; it is valid until the next begin.
func (e *encoder) run() (run []byte, bits int) {
	return e.w.Bytes(), e.w.Len()
}

// whole writes the slot's rows at fixed width.
func (e *encoder) whole(slot int) {
	e.begin(e.worst(slot))
	set := &e.server.slots.info[slot].set
	for c := set.Next(0); c >= 0; c = set.Next(c + 1) {
		e.packed.EncodeRow(&e.w, c, e.server.histories[c].Row(slot), nil, nil, 0)
	}
}

// update writes the slot's rows against those of the given ticks. It returns false if
// the state at the first one is not kept any more.
func (e *encoder) update(slot int, b delta.Baselines) (kind entryKind, ok bool) {
	s := e.server
	e.begin(e.worst(slot))
	info := &s.slots.info[slot]
	var ratio int64
	if b.Two {
		ratio = delta.Ratio(s.tick, b.A1, b.A2)
	}
	if info.restructured.After(b.A1) {
		var base delta.Set
		for c, h := range s.histories {
			switch _, found := h.At(slot, b.A1); found {
			case delta.Forgotten:
				return 0, false
			case delta.Present:
				base.Add(c)
			}
		}
		if base != info.set {
			kind = entryRestructure
			delta.WriteSet(&e.w, &info.set, &base)
		}
	}
	for c := info.set.Next(0); c >= 0; c = info.set.Next(c + 1) {
		h := s.histories[c]
		base, found := h.At(slot, b.A1)
		if found == delta.Forgotten {
			return 0, false
		}
		var base2 []uint32
		if found == delta.Absent {
			base = nil
		} else if ratio != 0 {
			if row, found2 := h.At(slot, b.A2); found2 == delta.Present {
				base2 = row
			} else if found2 == delta.Forgotten {
				return 0, false
			}
		}
		e.packed.EncodeRow(&e.w, c, h.Row(slot), base, base2, ratio)
	}
	return kind, true
}

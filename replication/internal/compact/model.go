package compact

import (
	"slices"

	"github.com/arche-replicate/arche-replicate/delta"
	"github.com/arche-replicate/arche-replicate/replication/internal/ackstate"
)

// A session with [Compact] has models: what was learnt up to the end of a packet. Both ends keep
// those of some packets. The server begins a packet with the model of one that is known to have
// come, and names it. What got lost was never learnt from.

// A State is what is known behind a packet.
type State struct {
	Model delta.Model
	Slots []ListedSlot // in rising order, at most MaxListed
	Tick  delta.Tick   // of the packet
}

// A ListedSlot is a slot that one of the last packets of a chain carried, each of which began
// with the model of the one before it: bit i tells of the packet i before the last.
type ListedSlot struct {
	Slot        uint32
	Seen        uint8
	span, third uint8 // of the baselines that it had last
}

const (
	// MaxListed bounds how many slots are listed, and MaxCompact the entries of a packet.
	MaxListed  = 2048
	MaxCompact = 2048
	// seenBits is how many packets back it is known whether they carried a slot.
	seenBits = 3

	// MaxKept is of how many packets the server keeps models at a time.
	MaxKept = 32
	// MaxSince is how many packets with models may follow one whose model is named still: the
	// client remembers those of HeldModels of them, and packets may overtake each other.
	MaxSince = 40
	// HeldModels is of how many packets the client keeps models: the newest that it took over.
	HeldModels = 64
	// MaxModelAge bounds by how many packets a model may be older than the packet.
	MaxModelAge = 1024
	// staleTicks is by how many ticks a model may be older than the newest that is known to have
	// come, and still be the better one for other slots.
	staleTicks = 1
)

// CopyFrom makes the state that of another one but for its list, which is empty.
func (s *State) CopyFrom(from *State) {
	if from == nil {
		s.Model.Reset()
	} else {
		s.Model = from.Model
	}
	s.Slots = s.Slots[:0]
}

// list adds a slot to the list, if there is room.
func (s *State) list(l ListedSlot) {
	if l.Seen != 0 && len(s.Slots) < MaxListed {
		s.Slots = append(s.Slots, l)
	}
}

// Named notes the baselines of the slot that was listed last, if it is that one.
func (s *State) Named(slot int, name *Name) {
	if n := len(s.Slots) - 1; n >= 0 && int(s.Slots[n].Slot) == slot {
		s.Slots[n].span, s.Slots[n].third = uint8(name.Span), uint8(name.Third)
	}
}

// KeptModels are those that the server keeps for a peer.
type KeptModels struct {
	List []KeptModel // in the order of their packets
	sent uint32      // packets so far whose models were kept
	Free []*State
	idle int // how many of these were not needed, in the ticks since some were given back
}

// A KeptModel is the model behind a packet, and the slots of that packet.
type KeptModel struct {
	Sequence uint32
	number   uint32 // among those that were kept
	acked    bool
	first    uint32 // slot in the packet
	last     uint32
	State    *State
}

// Take returns a state that nobody needs.
func (k *KeptModels) Take() *State {
	if n := len(k.Free); n > 0 {
		s := k.Free[n-1]
		k.Free[n-1] = nil
		k.Free = k.Free[:n-1]
		k.idle = min(k.idle, n-1)
		return s
	}
	return new(State)
}

// Shrink gives back now and then what a rare burst took.
func (k *KeptModels) Shrink(now delta.Tick) {
	if now%ackstate.ResizeTicks == 0 {
		n := len(k.Free) - min(k.idle, len(k.Free))
		clear(k.Free[n:])
		k.Free, k.idle = k.Free[:n], n
	}
}

func (k *KeptModels) Give(s *State) { k.Free = append(k.Free, s) }

// drop forgets one.
func (k *KeptModels) drop(i int) {
	k.Give(k.List[i].State)
	k.List = slices.Delete(k.List, i, i+1)
}

// Choose returns the model to begin a packet with whose first entry is of a slot: the newest
// one that is known to have come; but rather one that is a little older and of these slots. It
// returns nil if there is none.
func (k *KeptModels) Choose(slot int) (best *KeptModel) {
	for i := 0; i < len(k.List); {
		m := &k.List[i]
		if m.acked && k.sent-m.number > MaxSince {
			k.drop(i)
			continue
		}
		i++
		if !m.acked {
			continue
		}
		if best == nil || m.State.Tick.After(best.State.Tick) || m.State.Tick == best.State.Tick && m.far(slot) < best.far(slot) {
			best = m
		}
	}
	return best
}

// far returns how far a slot is from those of the packet.
func (m *KeptModel) far(slot int) int {
	switch {
	case slot < int(m.first):
		return int(m.first) - slot
	case slot > int(m.last):
		return slot - int(m.last)
	}
	return 0
}

// Room reports whether the model of one more packet can be kept. Of those that are known to
// have come, one is enough.
func (k *KeptModels) Room() bool {
	if len(k.List) < MaxKept {
		return true
	}
	oldest, acked := -1, 0
	for i := range k.List {
		if m := &k.List[i]; m.acked {
			if acked++; oldest < 0 || m.State.Tick.Before(k.List[oldest].State.Tick) {
				oldest = i
			}
		}
	}
	if acked < 2 {
		return false
	}
	k.drop(oldest)
	return true
}

// Keep keeps the model behind a packet.
func (k *KeptModels) Keep(sequence uint32, first, last uint32, s *State) {
	k.List = append(k.List, KeptModel{Sequence: sequence, number: k.sent, first: first, last: last, State: s})
	k.sent++
}

func (k *KeptModels) find(sequence uint32) int {
	return slices.IndexFunc(k.List, func(m KeptModel) bool { return m.Sequence == sequence })
}

// Acknowledge notes that a packet came. Models that are much older are not needed any more.
func (k *KeptModels) Acknowledge(sequence uint32) {
	i := k.find(sequence)
	if i < 0 {
		return
	}
	k.List[i].acked = true
	now := k.List[i].State.Tick
	for j := 0; j < len(k.List); {
		if m := &k.List[j]; m.acked && m.State.Tick.Before(now-staleTicks) {
			k.drop(j)
		} else {
			j++
		}
	}
}

// Lose notes that a packet is taken for lost.
func (k *KeptModels) Lose(sequence uint32) {
	if i := k.find(sequence); i >= 0 && !k.List[i].acked {
		k.drop(i)
	}
}

// A ModelStore is the models that a client keeps.
type ModelStore struct {
	List []heldModel
}

type heldModel struct {
	sequence uint32
	State    *State
}

// At returns what is known behind a packet, or nil.
func (h *ModelStore) At(sequence uint32) *State {
	for i := range h.List {
		if h.List[i].sequence == sequence {
			return h.List[i].State
		}
	}
	return nil
}

// Keep keeps a state, if it is one of the newest, and returns another one that nobody needs.
func (h *ModelStore) Keep(sequence uint32, s *State) *State {
	if len(h.List) < HeldModels {
		h.List = append(h.List, heldModel{sequence, s})
		return new(State)
	}
	oldest := 0
	for i := range h.List {
		if int32(h.List[i].sequence-h.List[oldest].sequence) < 0 {
			oldest = i
		}
	}
	if int32(sequence-h.List[oldest].sequence) < 0 {
		return s
	}
	old := h.List[oldest].State
	h.List[oldest] = heldModel{sequence, s}
	return old
}

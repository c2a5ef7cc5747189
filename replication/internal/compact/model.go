package compact

import (
	"slices"

	"github.com/arche-replicate/arche-replicate/delta"
	"github.com/arche-replicate/arche-replicate/replication/internal/ackstate"
)

// A model is adapted to everything that a chain of packets carried. Both ends keep the models at
// the end of some packets. The server begins a packet with the model of an acknowledged packet, and
// names it: so models only depend on packets that both ends have.

// A State is what both ends know at the end of a packet.
type State struct {
	Model delta.Model
	Slots []ListedSlot // in ascending order, at most MaxListed
	Tick  delta.Tick   // of the packet
}

// A ListedSlot is a slot that one of the last packets of a chain carried. Bit i of Seen is set if
// the packet i before the last did.
type ListedSlot struct {
	Slot                uint32
	Seen                uint8
	span, third, fourth uint8 // of the baselines of its last entry, see Name
}

const (
	MaxListed  = 2048 // slots in a list
	MaxCompact = 2048 // entries of a packet
	seenBits   = 3    // packets of a chain in ListedSlot.Seen

	// MaxKept is the number of models that the server keeps for a peer.
	MaxKept = 32
	// MaxSince is how many packets with a kept model the server may send before it stops naming an
	// older model. It is less than HeldModels because packets may overtake each other.
	MaxSince = 40
	// HeldModels is the largest number of models that the client keeps: those of the newest packets.
	HeldModels = 64
	// overtakenTicks is by how many ticks a packet may be overtaken without its model being dropped.
	overtakenTicks = 16
	// MaxModelAge bounds the age of a model, in packets before the one that names it.
	MaxModelAge = 1024
	// staleTicks is how many ticks older than the newest acknowledged model another one may be and
	// still be the better one for its slots.
	staleTicks = 1
)

// CopyFrom copies another state but for its list, which becomes empty. A nil state has a new model of
// the coding.
func (s *State) CopyFrom(from *State, c *delta.Compact) {
	if from == nil {
		c.Reset(&s.Model)
	} else {
		s.Model.CopyFrom(&from.Model)
	}
	s.Slots = s.Slots[:0]
}

// list adds a slot that was carried lately to the list, if there is room.
func (s *State) list(l ListedSlot) {
	if l.Seen != 0 && len(s.Slots) < MaxListed {
		s.Slots = append(s.Slots, l)
	}
}

// Named records the baselines of a slot that was just listed. A full list may lack it.
func (s *State) Named(slot int, name *Name) {
	if n := len(s.Slots) - 1; n >= 0 && int(s.Slots[n].Slot) == slot {
		l := &s.Slots[n]
		l.span, l.third, l.fourth = uint8(name.Span), uint8(name.Third), uint8(name.Fourth)
	}
}

// KeptModels are the models that the server keeps for a peer.
type KeptModels struct {
	List []KeptModel // in the order of their packets
	sent uint32      // packets so far whose models were kept
	Free []*State
	idle int // least number of free states since some were last given back
}

// A KeptModel is the state at the end of a packet.
type KeptModel struct {
	Sequence uint32
	number   uint32 // of the packet, among those whose models were kept
	acked    bool
	first    uint32 // slot of the packet
	last     uint32
	State    *State
}

// Take returns a state that is not in use.
func (k *KeptModels) Take() *State {
	s := takeFree(&k.Free)
	k.idle = min(k.idle, len(k.Free))
	return s
}

// takeFree takes a state from a list of free ones, or makes one.
func takeFree(free *[]*State) *State {
	n := len(*free)
	if n == 0 {
		return new(State)
	}
	s := (*free)[n-1]
	(*free)[n-1] = nil
	*free = (*free)[:n-1]
	return s
}

// Shrink frees the memory of a rare burst, from time to time.
func (k *KeptModels) Shrink(now delta.Tick) {
	if now%ackstate.ResizeTicks == 0 {
		n := len(k.Free) - min(k.idle, len(k.Free))
		clear(k.Free[n:])
		k.Free, k.idle = k.Free[:n], n
	}
}

// Give takes back a state that is no longer in use.
func (k *KeptModels) Give(s *State) { k.Free = append(k.Free, s) }

// drop drops a model.
func (k *KeptModels) drop(i int) {
	k.Give(k.List[i].State)
	k.List = slices.Delete(k.List, i, i+1)
}

// Choose returns the model that a packet with the given first slot begins with, or nil if there is
// none: an acknowledged one of the newest tick, and among these the one with the closest slots.
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
		if best == nil || m.State.Tick.After(best.State.Tick) ||
			m.State.Tick == best.State.Tick && m.far(slot) < best.far(slot) {
			best = m
		}
	}
	return best
}

// far returns the distance of a slot from those of the packet.
func (m *KeptModel) far(slot int) int {
	switch {
	case slot < int(m.first):
		return int(m.first) - slot
	case slot > int(m.last):
		return slot - int(m.last)
	}
	return 0
}

// Room reports whether one more model can be kept, and makes room if it can: of the acknowledged
// models, one is enough.
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

// Keep keeps the state at the end of a packet, which has entries from the first to the last slot.
func (k *KeptModels) Keep(sequence uint32, first, last uint32, s *State) {
	k.List = append(k.List, KeptModel{Sequence: sequence, number: k.sent, first: first, last: last, State: s})
	k.sent++
}

// find returns the index of the model of a packet, or -1.
func (k *KeptModels) find(sequence uint32) int {
	return slices.IndexFunc(k.List, func(m KeptModel) bool { return m.Sequence == sequence })
}

// Acknowledge marks the model of a packet as acknowledged, and drops models that are stale now.
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

// Lose drops the model of a packet that is taken for lost.
func (k *KeptModels) Lose(sequence uint32) {
	if i := k.find(sequence); i >= 0 && !k.List[i].acked {
		k.drop(i)
	}
}

// A ModelStore holds the models that a client keeps.
type ModelStore struct {
	List []heldModel
	free []*State
}

// A heldModel is the state at the end of a packet.
type heldModel struct {
	sequence uint32
	State    *State
}

// At returns the state at the end of a packet, or nil if it is not kept.
func (h *ModelStore) At(sequence uint32) *State {
	for i := range h.List {
		if h.List[i].sequence == sequence {
			return h.List[i].State
		}
	}
	return nil
}

// Keep keeps a state if it is one of the newest. It returns a state that is not in use.
func (h *ModelStore) Keep(sequence uint32, s *State) *State {
	if len(h.List) < HeldModels {
		h.List = append(h.List, heldModel{sequence, s})
		return takeFree(&h.free)
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

// Named drops models that the server no longer names, given the tick of a model that it named: it names none of an
// earlier tick in packets that it sends later, so only packets that were overtaken need one.
func (h *ModelStore) Named(tick delta.Tick) {
	kept := h.List[:0]
	for _, m := range h.List {
		if m.State.Tick.Before(tick - overtakenTicks) {
			h.free = append(h.free, m.State)
		} else {
			kept = append(kept, m)
		}
	}
	h.List = kept
}

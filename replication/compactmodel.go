package replication

import (
	"slices"

	"github.com/arche-replicate/arche-replicate/delta"
)

// A session with [Compact] has models: what was learnt up to the end of a packet. Both ends keep
// those of some packets. The server begins a packet with the model of one that is known to have
// come, and names it. What got lost was never learnt from.

// A compactState is what is known behind a packet.
type compactState struct {
	model delta.Model
	slots []listedSlot // in rising order, at most maxListed
	tick  delta.Tick   // of the packet
}

// A listedSlot is a slot that one of the last packets of a chain carried, each of which began
// with the model of the one before it: bit i tells of the packet i before the last.
type listedSlot struct {
	slot        uint32
	seen        uint8
	span, third uint8 // of the baselines that it had last
}

const (
	// maxListed bounds how many slots are listed, and maxCompact the entries of a packet.
	maxListed  = 2048
	maxCompact = 2048
	// seenBits is how many packets back it is known whether they carried a slot.
	seenBits = 3

	// maxKept is of how many packets the server keeps models at a time.
	maxKept = 32
	// maxSince is how many packets with models may follow one whose model is named still: the
	// client remembers those of heldModels of them, and packets may overtake each other.
	maxSince = 40
	// heldModels is of how many packets the client keeps models: the newest that it took over.
	heldModels = 64
	// maxModelAge bounds by how many packets a model may be older than the packet.
	maxModelAge = 1024
	// staleTicks is by how many ticks a model may be older than the newest that is known to have
	// come, and still be the better one for other slots.
	staleTicks = 1
)

// copyFrom makes the state that of another one but for its list, which is empty.
func (s *compactState) copyFrom(from *compactState) {
	if from == nil {
		s.model.Reset()
	} else {
		s.model = from.model
	}
	s.slots = s.slots[:0]
}

// list adds a slot to the list, if there is room.
func (s *compactState) list(l listedSlot) {
	if l.seen != 0 && len(s.slots) < maxListed {
		s.slots = append(s.slots, l)
	}
}

// named notes the baselines of the slot that was listed last, if it is that one.
func (s *compactState) named(slot int, name *compactName) {
	if n := len(s.slots) - 1; n >= 0 && int(s.slots[n].slot) == slot {
		s.slots[n].span, s.slots[n].third = uint8(name.span), uint8(name.third)
	}
}

// keptModels are those that the server keeps for a peer.
type keptModels struct {
	list []keptModel // in the order of their packets
	sent uint32      // packets so far whose models were kept
	free []*compactState
	idle int // how many of these were not needed, in the ticks since some were given back
}

type keptModel struct {
	sequence uint32
	number   uint32 // among those that were kept
	acked    bool
	first    uint32 // slot in the packet
	last     uint32
	state    *compactState
}

// take returns a state that nobody needs.
func (k *keptModels) take() *compactState {
	if n := len(k.free); n > 0 {
		s := k.free[n-1]
		k.free[n-1] = nil
		k.free = k.free[:n-1]
		k.idle = min(k.idle, n-1)
		return s
	}
	return new(compactState)
}

// shrink gives back now and then what a rare burst took.
func (k *keptModels) shrink(now delta.Tick) {
	if now%resizeTicks == 0 {
		n := len(k.free) - min(k.idle, len(k.free))
		clear(k.free[n:])
		k.free, k.idle = k.free[:n], n
	}
}

func (k *keptModels) give(s *compactState) { k.free = append(k.free, s) }

// drop forgets one.
func (k *keptModels) drop(i int) {
	k.give(k.list[i].state)
	k.list = slices.Delete(k.list, i, i+1)
}

// choose returns the model to begin a packet with whose first entry is of a slot: the newest
// one that is known to have come; but rather one that is a little older and of these slots. It
// returns nil if there is none.
func (k *keptModels) choose(slot int) (best *keptModel) {
	for i := 0; i < len(k.list); {
		m := &k.list[i]
		if m.acked && k.sent-m.number > maxSince {
			k.drop(i)
			continue
		}
		i++
		if !m.acked {
			continue
		}
		if best == nil || m.state.tick.After(best.state.tick) || m.state.tick == best.state.tick && m.far(slot) < best.far(slot) {
			best = m
		}
	}
	return best
}

// far returns how far a slot is from those of the packet.
func (m *keptModel) far(slot int) int {
	switch {
	case slot < int(m.first):
		return int(m.first) - slot
	case slot > int(m.last):
		return slot - int(m.last)
	}
	return 0
}

// room reports whether the model of one more packet can be kept. Of those that are known to
// have come, one is enough.
func (k *keptModels) room() bool {
	if len(k.list) < maxKept {
		return true
	}
	oldest, acked := -1, 0
	for i := range k.list {
		if m := &k.list[i]; m.acked {
			if acked++; oldest < 0 || m.state.tick.Before(k.list[oldest].state.tick) {
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

// keep keeps the model behind a packet.
func (k *keptModels) keep(sequence uint32, first, last uint32, s *compactState) {
	k.list = append(k.list, keptModel{sequence: sequence, number: k.sent, first: first, last: last, state: s})
	k.sent++
}

func (k *keptModels) find(sequence uint32) int {
	return slices.IndexFunc(k.list, func(m keptModel) bool { return m.sequence == sequence })
}

// acknowledge notes that a packet came. Models that are much older are not needed any more.
func (k *keptModels) acknowledge(sequence uint32) {
	i := k.find(sequence)
	if i < 0 {
		return
	}
	k.list[i].acked = true
	now := k.list[i].state.tick
	for j := 0; j < len(k.list); {
		if m := &k.list[j]; m.acked && m.state.tick.Before(now-staleTicks) {
			k.drop(j)
		} else {
			j++
		}
	}
}

// lose notes that a packet is taken for lost.
func (k *keptModels) lose(sequence uint32) {
	if i := k.find(sequence); i >= 0 && !k.list[i].acked {
		k.drop(i)
	}
}

// A modelStore is the models that a client keeps.
type modelStore struct {
	list []heldModel
}

type heldModel struct {
	sequence uint32
	state    *compactState
}

// at returns what is known behind a packet, or nil.
func (h *modelStore) at(sequence uint32) *compactState {
	for i := range h.list {
		if h.list[i].sequence == sequence {
			return h.list[i].state
		}
	}
	return nil
}

// keep keeps a state, if it is one of the newest, and returns another one that nobody needs.
func (h *modelStore) keep(sequence uint32, s *compactState) *compactState {
	if len(h.list) < heldModels {
		h.list = append(h.list, heldModel{sequence, s})
		return new(compactState)
	}
	oldest := 0
	for i := range h.list {
		if int32(h.list[i].sequence-h.list[oldest].sequence) < 0 {
			oldest = i
		}
	}
	if int32(sequence-h.list[oldest].sequence) < 0 {
		return s
	}
	old := h.list[oldest].state
	h.list[oldest] = heldModel{sequence, s}
	return old
}

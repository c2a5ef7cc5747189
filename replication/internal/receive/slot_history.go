package receive

import (
	"math/bits"

	"github.com/arche-replicate/arche-replicate/delta"
	"github.com/arche-replicate/arche-replicate/replication/internal/wire"
)

// A slotHistory remembers the slots of which the packets of recent ticks had states. Later packets refer to
// them.
type slotHistory struct {
	ticks []tickSlots      // by tick modulo their number, a power of two; packets may come late
	fresh []wire.SlotBlock // of the packet that is being read
	merge []wire.SlotBlock
}

type tickSlots struct {
	tick  delta.Tick
	slots []wire.SlotBlock
}

// reset forgets all slots. From now on it remembers those of so many ticks at least. A power of two divides the
// ticks where they wrap around, so that no two of them share a place there.
func (h *slotHistory) reset(ticks delta.Tick) {
	n := 1 << bits.Len32(uint32(ticks-1))
	if h.forget(); len(h.ticks) != n {
		h.ticks = make([]tickSlots, n)
	}
}

// of returns the place of a tick.
func (h *slotHistory) of(tick delta.Tick) *tickSlots { return &h.ticks[tick%delta.Tick(len(h.ticks))] }

// at returns the slots of a tick, or nil if there are none.
func (h *slotHistory) at(tick delta.Tick) []wire.SlotBlock {
	if t := h.of(tick); t.tick == tick && len(t.slots) > 0 {
		return t.slots
	}
	return nil
}

// forget forgets all slots.
func (h *slotHistory) forget() {
	for i := range h.ticks {
		h.ticks[i].slots = h.ticks[i].slots[:0]
	}
}

// note notes the slots of all states in the packet.
func (h *slotHistory) note(entries []stagedEntry, tick delta.Tick) {
	h.fresh = h.fresh[:0]
	for i := range entries {
		e := &entries[i]
		if e.layout == nil || e.tick != tick {
			continue
		}
		b, bit := e.slot>>6, uint64(1)<<(e.slot&63)
		if n := len(h.fresh); n > 0 && h.fresh[n-1].Block == b {
			h.fresh[n-1].Mask |= bit
		} else {
			h.fresh = append(h.fresh, wire.SlotBlock{Block: b, Mask: bit})
		}
	}
}

// keep adds the slots of the packet, which was received, to those of its tick.
func (h *slotHistory) keep(tick delta.Tick) {
	if len(h.fresh) == 0 {
		return
	}
	t := h.of(tick)
	if len(t.slots) > 0 && int32(t.tick-tick) > 0 {
		return // too late to be referred to
	}
	if t.tick != tick {
		t.tick, t.slots = tick, t.slots[:0]
	}
	if n := len(t.slots); n == 0 || t.slots[n-1].Block < h.fresh[0].Block {
		t.slots = append(t.slots, h.fresh...)
		return
	}
	h.merge = mergeBlocks(h.merge[:0], t.slots, h.fresh)
	t.slots, h.merge = h.merge, t.slots
}

// refresh forgets the slots of one place if they are so old that ticks may wrap around before it is used again: they
// would seem to be of the future. It takes the places in turn.
func (h *slotHistory) refresh(now delta.Tick, turn uint32) {
	if len(h.ticks) == 0 {
		return
	}
	if t := &h.ticks[turn%uint32(len(h.ticks))]; now-t.tick > wire.Ancient {
		t.slots = t.slots[:0]
	}
}

// mergeBlocks appends the union of two ascending lists.
func mergeBlocks(dst, a, b []wire.SlotBlock) []wire.SlotBlock {
	for len(a) > 0 || len(b) > 0 {
		switch {
		case len(b) == 0 || len(a) > 0 && a[0].Block < b[0].Block:
			dst, a = append(dst, a[0]), a[1:]
		case len(a) == 0 || b[0].Block < a[0].Block:
			dst, b = append(dst, b[0]), b[1:]
		default:
			dst = append(dst, wire.SlotBlock{Block: a[0].Block, Mask: a[0].Mask | b[0].Mask})
			a, b = a[1:], b[1:]
		}
	}
	return dst
}

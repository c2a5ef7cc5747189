package receive

import (
	"github.com/arche-replicate/arche-replicate/delta"
	"github.com/arche-replicate/arche-replicate/replication/internal/wire"
)

// A Watch records what came since it was last emptied, for package interpolation, which looks at it once per frame.
type Watch struct {
	Packets  []Arrival // state packets in order of arrival, but for the last one if there are very many
	Slots    []uint32  // with new states, each once
	Sessions int       // how often all states were forgotten
	// Keep is for how many ticks older states are held, if that is longer than the protocol asks for.
	Keep delta.Tick
}

// An Arrival is a state packet that came.
type Arrival struct {
	Tick     delta.Tick
	Sequence uint32
	Settled  bool // the server had left nothing unsent before it
	Crowded  bool // it is the newest of those that the watch has no room for; the others are left out
}

// maxArrivals is the number of packets that a watch records, apart from the newest one after these.
const maxArrivals = 255

// keep returns for how long older states are held if the protocol asks for the given ticks.
func (w *Watch) keep(least delta.Tick) delta.Tick {
	if w == nil {
		return least
	}
	return max(least, w.Keep)
}

// notePacket records a packet.
func (w *Watch) notePacket(h *wire.StateHeader) {
	if w == nil {
		return
	}
	a := Arrival{delta.Tick(h.Tick), h.Sequence, h.Settled, len(w.Packets) >= maxArrivals}
	if len(w.Packets) <= maxArrivals {
		w.Packets = append(w.Packets, a)
	} else if last := &w.Packets[maxArrivals]; int32(a.Sequence-last.Sequence) > 0 {
		*last = a
	}
}

// noteSlot records that there is a new state of a slot.
func (w *Watch) noteSlot(slot uint32, m *Replica) {
	if w != nil && !m.watched {
		m.watched = true
		w.Slots = append(w.Slots, slot)
	}
}

// noteForgotten records that all states were forgotten.
func (w *Watch) noteForgotten() {
	if w != nil {
		w.Sessions++
		w.Packets = w.Packets[:0]
	}
}

// Empty makes the watch record from now on. replicas are the receiver's.
func (w *Watch) Empty(replicas *ReplicaTable) {
	for _, slot := range w.Slots {
		if m := replicas.At(slot); m != nil {
			m.watched = false
		}
	}
	w.Slots, w.Packets = w.Slots[:0], w.Packets[:0]
}

package receive

import (
	"github.com/arche-replicate/arche-replicate/delta"
	"github.com/arche-replicate/arche-replicate/replication/internal/wire"
)

// A Watch records what came since it was last emptied, for a package that looks at it once per frame.
type Watch struct {
	Packets  []Arrival // state packets in order of arrival, but for the last one if there are very many
	Slots    []uint32  // with new states, each once
	Sessions int       // how often all states were forgotten
	// Keep is for how many ticks older states are held, if that is longer than the protocol asks for.
	Keep delta.Tick

	bit uint8 // of Replica.watched
}

// watches are all of a receiver.
type watches struct {
	list  []*Watch
	Trace tracer // nil: nobody explains packets
	joint
}

// A joint makes the sequences of a session follow those of the session that it continues.
type joint struct {
	continued bool   // the session continues another one, and no later state has arrived
	shift     uint32 // from the sequences of the session to those that watches see
	newest    uint32 // of the latter
}

// maxWatches is how many bits Replica.watched has.
const maxWatches = 8

// Add makes a watch, which is not one of them yet, record what comes.
func (all *watches) Add(w *Watch) {
	if len(all.list) == maxWatches {
		panic("receive: more than 8 watches: attach each package to a client once")
	}
	w.bit = 1 << len(all.list)
	all.list = append(all.list, w)
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
func (all *watches) keep(least delta.Tick) delta.Tick {
	for _, w := range all.list {
		least = max(least, w.Keep)
	}
	return least
}

// notePacket records a packet. newer reports whether its state is. In a session that continues another one, the packets
// that repeat the last state of that are left out.
func (all *watches) notePacket(h *wire.StateHeader, newer bool) {
	if all.continued {
		if !newer {
			return
		}
		all.continued, all.shift = false, all.newest+1-h.Sequence
	}
	at := Arrival{Tick: delta.Tick(h.Tick), Sequence: h.Sequence + all.shift, Settled: h.Settled}
	all.newest = at.Sequence
	for _, w := range all.list {
		w.notePacket(at)
	}
}

func (w *Watch) notePacket(a Arrival) {
	a.Crowded = len(w.Packets) >= maxArrivals
	if len(w.Packets) <= maxArrivals {
		w.Packets = append(w.Packets, a)
	} else if last := &w.Packets[maxArrivals]; int32(a.Sequence-last.Sequence) > 0 {
		*last = a
	}
}

// noteSlot records that there is a new state of a slot.
func (all *watches) noteSlot(slot uint32, m *Replica) {
	for _, w := range all.list {
		if m.watched&w.bit == 0 {
			m.watched |= w.bit
			w.Slots = append(w.Slots, slot)
		}
	}
}

// noteForgotten records that all states were forgotten.
func (all *watches) noteForgotten() {
	for _, w := range all.list {
		w.Sessions++
		w.Packets = w.Packets[:0]
	}
}

// Empty makes the watch record from now on. replicas are the receiver's.
func (w *Watch) Empty(replicas *ReplicaTable) {
	for _, slot := range w.Slots {
		if m := replicas.At(slot); m != nil {
			m.watched &^= w.bit
		}
	}
	w.Slots, w.Packets = w.Slots[:0], w.Packets[:0]
}

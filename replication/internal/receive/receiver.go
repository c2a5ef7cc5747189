// Package receive turns state packets into the states that a client holds by tick. Packets come in
// from the face, after the handshake; each is checked, decoded against held states and staged, and
// takes effect completely or not at all. It puts out the slots whose newest state the world does
// not show yet, which package apply reads, and the acks for the server. It knows no world.
package receive

import (
	"errors"

	"github.com/arche-replicate/arche-replicate/bitbuf"
	"github.com/arche-replicate/arche-replicate/delta"
	"github.com/arche-replicate/arche-replicate/replication/internal/compact"
	"github.com/arche-replicate/arche-replicate/replication/internal/config"
	"github.com/arche-replicate/arche-replicate/replication/internal/counters"
	"github.com/arche-replicate/arche-replicate/replication/internal/schema"
	"github.com/arche-replicate/arche-replicate/replication/internal/wire"
)

// Receiver holds what a client received: the states of every slot, which may serve as baselines,
// and what is to be acknowledged.
type Receiver struct {
	schema *schema.Schema
	stats  *counters.ClientCounters

	Keep      delta.Tick // for how long older states are held
	NearTick  uint32     // newest tick received, at first that of the welcome
	AnyState  bool       // a state packet of this session was received
	StateTick uint32     // of the newest state packet of any session
	Interval  uint8      // in ticks, between state packets, as of the newest one; 0 before the first
	Window    wire.ReceiveWindow
	ackedUpTo [2]uint32 // newest sequences in the last two acks
	refreshed uint32    // pages of replicas that were refreshed so far
	Settled   Settling

	Replicas ReplicaTable
	Layouts  layouts
	Bare     *Layout // of a sub-entity that is on no entity
	staged   staging
	FreeWork config.WorkBound // per packet; tests change it
	Parts    map[uint32]*assembly
	Dirty    []uint32               // slots whose newest state the world does not show yet
	Missing  []wire.MissingBaseline // for the next ack
	NewAcks  bool                   // something was received since the last ack
	Watches  watches                // of the packages that look at what came

	Compact *compact.Reader // nil: the session is Packed
	in      input
	out     []byte
	ack     wire.Ack
}

// NewReceiver returns a receiver that has received nothing. slots is how many slots the client
// takes, relations which components are relations of Arche.
func NewReceiver(s *schema.Schema, stats *counters.ClientCounters, slots uint32, relations wire.ComponentSet) Receiver {
	rc := Receiver{
		schema: s, stats: stats,
		Layouts:  newLayouts(s, relations),
		Replicas: ReplicaTable{Limit: slots},
		Parts:    map[uint32]*assembly{},
		in:       newInput(s),
		out:      make([]byte, 512),
		FreeWork: config.FreeWork,
	}
	rc.staged = newStaging(s, rc.Layouts.Rows)
	rc.Bare = rc.Layouts.bare()
	return rc
}

// Begin starts a session and forgets all states of former ones.
func (rc *Receiver) Begin(m *wire.Welcome) {
	rc.Continue(m)
	rc.Watches.joint = joint{}
	rc.NearTick, rc.AnyState = m.Tick, false
	rc.forgetStates()
}

// Continue starts a session that begins with the state in which the former one ended. States that are held stay, for
// those who look at them, and no watch is notified.
func (rc *Receiver) Continue(m *wire.Welcome) {
	rc.Compact = nil
	if m.Compact {
		rc.Compact = compact.NewReader(rc.schema)
	}
	rc.Keep = 2 * delta.Tick(m.Window)
	rc.in.former.reset(rc.Keep)
	rc.in.known = false
	rc.ackedUpTo = [2]uint32{m.Sequence - 1, m.Sequence - 1}
	rc.Window = wire.NewReceiveWindow(m.Sequence)
	rc.Settled.begin(m.Sequence)
	rc.NewAcks = false
	rc.Watches.continued = true
	rc.Missing = rc.Missing[:0]
	clear(rc.Parts)
}

// ErrOutdated is the error of a state packet after a gap so long that the client had to forget all
// states.
var ErrOutdated = errors.New("replication: what the client knows is too old")

// Acked reports whether the latest packet shows that the server has received an ack since it sent those before.
func (rc *Receiver) Acked() bool { return rc.in.acked }

// StateTaken reports whether a state packet counts as received in spite of an error from Receive.
func StateTaken(err error) bool {
	return err == nil || errors.Is(err, wire.ErrMissingBaseline) || errors.Is(err, wire.ErrMissingModel)
}

// Receive takes a state packet. body is the packet without its checksum.
func (rc *Receiver) Receive(packet, body []byte, key wire.Key) (wire.StateHeader, error) {
	h, rest, pad, err := rc.Window.ParseHeader(body, key.Off)
	if err != nil {
		return h, err
	}
	if !key.Matches(packet, h.Sequence, h.Tick) {
		return h, wire.ErrChecksum
	}
	if !rc.Window.Fresh(h.Sequence) || key.Off && !rc.Window.Near(h.Sequence) {
		return h, wire.ErrStale
	}
	if h.Interval < 1 || h.Interval > wire.MaxInterval {
		return h, wire.ErrMalformed
	}
	if err = rc.DecodeBody(rest, pad, &h); !StateTaken(err) {
		return h, err
	}
	if rc.AnyState && rc.Outdated(h.Tick) { // the packet's slots may be other entities than the client's
		rc.forgetStates()
		rc.Settled.begin(rc.Settled.first)
		return h, ErrOutdated
	}
	rc.stats.Packets++
	rc.stats.Bytes += uint64(len(packet))
	late := int32(h.Sequence-rc.Window.Newest) <= 0
	if rc.Window.Add(&h, err == nil); err == nil {
		rc.Settled.arrive(&rc.Window, h.Sequence, delta.Tick(h.Tick), late)
	}
	newer := !rc.AnyState || int32(h.Tick-rc.NearTick) > 0
	if newer {
		rc.NearTick, rc.StateTick, rc.Interval = h.Tick, h.Tick, h.Interval
	}
	rc.in.noteNamed()
	rc.AnyState, rc.NewAcks = true, true
	rc.Watches.notePacket(&h, newer)
	return h, err
}

// commit makes the staged entries of a packet held states. base is the packet's base tick.
func (rc *Receiver) commit(h *wire.StateHeader, base delta.Tick) error {
	s, now := &rc.staged, delta.Tick(h.Tick)
	if h.Settled {
		rc.Settled.take(&rc.Window, claim{h.Sequence, now, base, delta.Tick(h.Interval)})
	}
	if rc.AnyState && delta.Tick(rc.NearTick).After(now) {
		now = delta.Tick(rc.NearTick)
	}
	for i := range s.entries {
		rc.commitEntry(&s.entries[i], now)
	}
	var err error
	for i := range s.parts {
		if e := rc.commitPart(&s.parts[i], now); e != nil {
			err = e
		}
	}
	return err
}

// commitEntry makes a staged state, or a staged despawn, the state of its slot.
func (rc *Receiver) commitEntry(e *stagedEntry, now delta.Tick) {
	m := rc.Replicas.add(e.slot)
	newer := !m.Any || e.tick.After(m.Newest)
	if e.layout != nil {
		h := m.Held.put(e.tick, now, rc.Watches.keep(rc.Keep), e.layout.words)
		if h == nil {
			rc.stats.Outdated++
			return
		}
		h.Generation = e.generation
		rc.Watches.noteSlot(e.slot, m)
		h.hold(e.layout, rc.staged.words[e.first:][:e.layout.words])
		if newer {
			h.since = rc.Settled.since(m, e.tick)
		}
	}
	if !newer {
		rc.stats.Outdated++
		return
	}
	if e.layout == nil && !(m.Any && m.Empty) { // a group repeats it until it is acknowledged
		m.Ended, m.Left = e.tick, e.left
	}
	m.Newest, m.Any, m.Empty = e.tick, true, e.layout == nil
	if a := rc.Parts[e.slot]; a != nil && !a.tick.After(e.tick) {
		delete(rc.Parts, e.slot) // parts of an older state, which is no longer needed
	}
	if !m.Dirty {
		rc.MarkDirty(e.slot, m)
	}
}

// MarkDirty notes that the world does not show a replica's newest state yet.
func (rc *Receiver) MarkDirty(slot uint32, m *Replica) {
	m.Dirty = true
	rc.Dirty = append(rc.Dirty, slot)
}

// repeatedAcks is the number of packets before the last two acks that an ack repeats at least. With the
// packets of some ticks, they fit into one word.
const repeatedAcks = 24

// WriteAcks returns a packet that acknowledges what was received since the last one, and once more
// what was received before that. The packet is valid until the next call.
func (rc *Receiver) WriteAcks(key wire.Key) (packet []byte) {
	a := &rc.ack
	a.Sequence = 0
	a.Count = 0
	if rc.Window.Any {
		a.Sequence = rc.Window.Newest
		// Every packet is in at least two acks, since one may be lost.
		behind := rc.Window.Newest - rc.ackedUpTo[1] + repeatedAcks
		a.Count = int(min((behind+31)/32, wire.MaxAckWords))
		for i := range a.Words[:a.Count] {
			a.Words[i] = rc.Window.History(rc.Window.Newest - uint32(i*32))
		}
		if rc.Window.Newest != rc.ackedUpTo[0] {
			rc.ackedUpTo = [2]uint32{rc.Window.Newest, rc.ackedUpTo[0]}
		}
	}
	a.Lacks = copy(a.Missing[:], rc.Missing)
	rc.Missing = rc.Missing[:0]
	from := key.Size()
	w := bitbuf.NewWriter(rc.out[from:])
	a.Write(&w)
	packet = rc.out[:from+len(w.Bytes())]
	key.Write(packet, 0, 0)
	rc.NewAcks = false
	rc.stats.Acks++
	return packet
}

// Ready reports whether everything that a message waits for was received.
func (rc *Receiver) Ready(deps []wire.Dependency) bool {
	for _, d := range deps {
		if m := rc.Replicas.At(d.Slot); m == nil || !m.Any || m.Newest.Before(d.Tick) {
			return false
		}
	}
	return true
}

// Comparable returns the newest state of a slot for a comparison with the server's hashes. It
// returns nil if that state is not of the age ticks up to the given one.
func (rc *Receiver) Comparable(slot uint32, tick delta.Tick, age uint64) *HeldState {
	m := rc.Replicas.At(slot)
	// An empty slot proves nothing: the entity may have gone out of view and come back.
	if m == nil || !m.Any || m.Empty || uint64(tick-m.Newest) > age {
		rc.stats.HashesSkipped++
		return nil
	}
	return m.Held.At(m.Newest)
}

// GenerationSpan is the number of ticks without a state after which a slot with the same generation
// may hold another entity. It is half of the time until a generation can return: a slot has 65,536
// generations, and each lasts at least 2 ticks (see snapshot/free_slots.go).
const GenerationSpan = 1 << 16

// Outdated reports whether, at a tick of the server, the slots of the client may hold other
// entities.
func (rc *Receiver) Outdated(tick uint32) bool {
	return int32(tick-rc.StateTick) > GenerationSpan
}

// forgetStates forgets the states of all slots. What the world shows of them stays.
func (rc *Receiver) forgetStates() {
	rc.Dirty = rc.Dirty[:0]
	rc.in.former.forget()
	rc.Watches.noteForgotten()
	rc.Replicas.forgetStates()
}

// ForgetReplicas forgets the states and all other memory of slots.
func (rc *Receiver) ForgetReplicas() { rc.Replicas.Pages, rc.Dirty = nil, nil }

// Refresh keeps the ticks of replicas that rest for months within reach of serial arithmetic. It
// forgets when their last state came, so that any next one counts as newer. Each call sees to a few slots: a million
// of them have their turn within hours, which is soon enough for ticks that wrap in months.
func (rc *Receiver) Refresh() {
	n := uint32(len(rc.Replicas.Pages))
	if n == 0 || !rc.AnyState {
		return
	}
	now := delta.Tick(rc.NearTick)
	rc.in.former.refresh(now, rc.refreshed)
	const parts = ReplicaPage / refreshedAtOnce
	page, part := rc.Replicas.Pages[rc.refreshed/parts%n], rc.refreshed%parts*refreshedAtOnce
	rc.refreshed++
	if page == nil {
		return
	}
	for i := range page[part : part+refreshedAtOnce] {
		m := &page[int(part)+i]
		if m.Any && now-m.Newest > wire.Ancient && !m.Dirty {
			m.Any = false
		}
		m.Held.refresh(now)
	}
}

// refreshedAtOnce is the number of slots that Refresh sees to, a part of a page.
const refreshedAtOnce = 8

// Crowded reports whether it is time to forget unused layouts, before there are too many.
func (rc *Receiver) Crowded() bool {
	n := len(rc.Layouts.Known)
	if len(rc.Replicas.Pages) == 0 || !rc.AnyState {
		return false
	}
	return n == MaxLayouts || n >= manyLayouts && rc.refreshed%sweepEvery == 0
}

// SweepLayouts forgets unused layouts, and held states that are no longer needed. used has the layouts that are used
// elsewhere; it is added to.
func (rc *Receiver) SweepLayouts(used map[*Layout]bool) {
	used[rc.Bare] = true
	for _, page := range rc.Replicas.Pages {
		for i := range page {
			m := &page[i]
			m.Held.tidy(delta.Tick(rc.NearTick), rc.Watches.keep(rc.Keep))
			for j := range m.Held.Ring {
				used[m.Held.Ring[j].Layout] = true
			}
		}
	}
	for set, l := range rc.Layouts.Known {
		if !used[l] {
			delete(rc.Layouts.Known, set)
		}
	}
}

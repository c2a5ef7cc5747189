// Package receive decodes state packets into the states that a client holds, staged and checked.
package receive

import (
	"errors"

	"github.com/arche-replicate/arche-replicate/bitbuf"
	"github.com/arche-replicate/arche-replicate/delta"
	"github.com/arche-replicate/arche-replicate/replication/internal/archeutil"
	"github.com/arche-replicate/arche-replicate/replication/internal/compact"
	"github.com/arche-replicate/arche-replicate/replication/internal/config"
	"github.com/arche-replicate/arche-replicate/replication/internal/counters"
	"github.com/arche-replicate/arche-replicate/replication/internal/schema"
	"github.com/arche-replicate/arche-replicate/replication/internal/wire"
)

// Receiver is what a client received: the states of every slot, which may serve as baselines, and what is to be acknowledged.
// It knows no world.
type Receiver struct {
	schema *schema.Schema
	stats  *counters.ClientCounters

	Keep      delta.Tick
	refreshed uint32 // pages of mirrors looked after so far
	NearTick  uint32 // to complete sequences and ticks with
	StateTick uint32 // of the newest state packet of any session
	AnyState  bool
	window    wire.ReceiveWindow
	NearSeq   uint32
	ackedUpTo [2]uint32 // newest sequences in the last two acks sent

	Replicas ReplicaTable
	Layouts  layouts
	Bare     *Layout // of sub-entities without components
	staged   staging
	FreeWork config.WorkBound // of a packet; another one in tests
	Parts    map[uint32]*assembly
	Dirty    []uint32
	Missing  []wire.MissingBaseline
	NewAcks  bool

	Compact *compact.Reader // nil: the session is Packed
	in      input
	out     []byte
	ack     wire.Ack
}

// NewReceiver returns a receiver that has received nothing.
func NewReceiver(s *schema.Schema, stats *counters.ClientCounters, slots uint32, relations delta.Set) Receiver {
	rc := Receiver{
		schema: s, stats: stats,
		Layouts:  layouts{schema: s, Rows: new(archeutil.RowPool), Relations: relations, Known: map[delta.Set]*Layout{}},
		Replicas: ReplicaTable{Limit: slots},
		staged:   staging{schema: s, resources: archeutil.ResourcesOf(s)},
		Parts:    map[uint32]*assembly{},
		in:       newInput(s),
		out:      make([]byte, 512),
		FreeWork: config.FreeWork,
	}
	rc.Bare = rc.Layouts.bare()
	return rc
}

// Begin makes nothing known of what the session sends.
func (rc *Receiver) Begin(m *wire.Welcome) {
	rc.Compact = nil
	if m.Compact {
		rc.Compact = compact.NewReader(rc.schema)
	}
	rc.Keep = 2 * delta.Tick(m.Window)
	rc.NearSeq, rc.NearTick = m.Sequence, m.Tick
	rc.ackedUpTo = [2]uint32{m.Sequence - 1, m.Sequence - 1}
	rc.window = wire.NewReceiveWindow(m.Sequence)
	rc.AnyState, rc.NewAcks = false, false
	rc.Missing = rc.Missing[:0]
	clear(rc.Parts)
	rc.forgetStates()
}

// ErrOutdated is the error of a state packet after which nothing of the session is known any more.
var ErrOutdated = errors.New("replication: what the client knows is too old")

// StateTaken reports whether a state packet with that error counts as received.
func StateTaken(err error) bool {
	return err == nil || errors.Is(err, wire.ErrMissingBaseline) || errors.Is(err, wire.ErrMissingModel)
}

// Receive takes a packet with state, of which the body is without its checksum. What becomes of it the error tells, see StateTaken.
func (rc *Receiver) Receive(packet, body []byte, key wire.Key) (wire.StateHeader, error) {
	h, rest, pad, ok := wire.ParseStateHeader(body, rc.NearSeq, rc.NearTick)
	if !ok {
		return h, wire.ErrMalformed
	}
	if !key.Matches(packet, h.Sequence, h.Tick) {
		return h, wire.ErrChecksum
	}
	if !rc.window.Fresh(h.Sequence) {
		return h, wire.ErrStale
	}
	err := rc.DecodeBody(rest, pad, h.Sequence, delta.Tick(h.Tick))
	if !StateTaken(err) {
		return h, err
	}
	if rc.AnyState && rc.Outdated(h.Tick) { // and so may be what the packet is about
		rc.forgetStates()
		return h, ErrOutdated
	}
	rc.stats.Packets++
	rc.stats.Bytes += uint64(len(packet))
	rc.window.Add(h.Sequence, err == nil)
	rc.NearSeq = rc.window.Newest
	if !rc.AnyState || int32(h.Tick-rc.NearTick) > 0 {
		rc.NearTick, rc.StateTick = h.Tick, h.Tick
	}
	rc.AnyState, rc.NewAcks = true, true
	return h, err
}

// commit takes the staged entries over. The mirrors' newest states are what Apply shows.
func (rc *Receiver) commit(now delta.Tick) error {
	s := &rc.staged
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

// commitEntry takes over a state of a slot.
func (rc *Receiver) commitEntry(e *stagedEntry, now delta.Tick) {
	m := rc.Replicas.add(e.slot)
	newer := !m.Any || e.tick.After(m.Newest)
	if e.layout != nil {
		h := m.Held.Put(e.tick, now, rc.Keep)
		if h == nil {
			rc.stats.Outdated++
			return
		}
		h.Generation = e.generation
		h.Hold(e.layout, rc.staged.words[e.first:][:e.layout.Words])
	}
	if !newer {
		rc.stats.Outdated++
		return
	}
	m.Newest, m.Any, m.Empty = e.tick, true, e.layout == nil
	if a := rc.Parts[e.slot]; a != nil && !a.tick.After(e.tick) {
		delete(rc.Parts, e.slot) // an older state: nobody waits for it any more
	}
	if !m.Dirty {
		rc.MarkDirty(e.slot, m)
	}
}

// MarkDirty notes that a mirror's newest state is to be shown.
func (rc *Receiver) MarkDirty(slot uint32, m *Replica) {
	m.Dirty = true
	rc.Dirty = append(rc.Dirty, slot)
}

// WriteAcks acknowledges what came since the last time, and what came before once more. The packet is valid until the next one.
func (rc *Receiver) WriteAcks(key wire.Key) (packet []byte) {
	a := &rc.ack
	a.Sequence = 0
	a.Count = 0
	if rc.window.Any {
		a.Sequence = rc.window.Newest
		// Every packet is in two acks at least, for one may be lost.
		behind := rc.window.Newest - rc.ackedUpTo[1] + 32
		a.Count = int(min((behind+31)/32, wire.MaxAckWords))
		for i := range a.Words[:a.Count] {
			a.Words[i] = rc.window.History(rc.window.Newest - uint32(i*32))
		}
		if rc.window.Newest != rc.ackedUpTo[0] {
			rc.ackedUpTo = [2]uint32{rc.window.Newest, rc.ackedUpTo[0]}
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

// Ready reports whether the world shows all that a message waits for.
func (rc *Receiver) Ready(deps []wire.Dependency) bool {
	for _, d := range deps {
		if m := rc.Replicas.At(d.Slot); m == nil || !m.Any || m.Newest.Before(d.Tick) {
			return false
		}
	}
	return true
}

// Comparable returns the newest state of a slot if it is one from the last so many ticks up
// to the given one, or nil.
func (rc *Receiver) Comparable(slot uint32, tick delta.Tick, age uint64) *HeldState {
	m := rc.Replicas.At(slot)
	// An empty slot tells nothing: the entity may have gone out of view and come back.
	if m == nil || !m.Any || m.Empty || uint64(tick-m.Newest) > age {
		rc.stats.HashesSkipped++
		return nil
	}
	return m.Held.At(m.Newest)
}

// GenerationSpan is how many ticks after the last state that it got a client can be sure that
// a slot with the same generation still means the same entity: half of what it takes until a
// generation comes again at the earliest. Each of the 65,536 lives of a slot until then takes 2
// ticks or more, see snapshot/free_slots.go.
const GenerationSpan = 1 << 16

// Outdated reports whether at a tick of the server's, what the client shows may mean other
// entities.
func (rc *Receiver) Outdated(tick uint32) bool {
	return int32(tick-rc.StateTick) > GenerationSpan
}

// forgetStates forgets the states of all slots. What the world shows of them stays.
func (rc *Receiver) forgetStates() {
	rc.Dirty = rc.Dirty[:0]
	rc.Replicas.forgetStates()
}

// ForgetReplicas forgets all.
func (rc *Receiver) ForgetReplicas() { rc.Replicas.Pages, rc.Dirty = nil, nil }

// Refresh keeps the ticks of mirrors that rest for months within reach of serial
// arithmetic: it is forgotten when the last word of them came, so that the server's next one is news.
func (rc *Receiver) Refresh() {
	n := uint32(len(rc.Replicas.Pages))
	if n == 0 || !rc.AnyState {
		return
	}
	now := delta.Tick(rc.NearTick)
	page := rc.Replicas.Pages[rc.refreshed%n]
	rc.refreshed++
	for i := range page {
		m := &page[i]
		if m.Any && now-m.Newest > wire.Ancient && !m.Dirty {
			m.Any = false
		}
		m.Held.refresh(now)
	}
}

// Crowded reports whether it is time to forget unused layouts, before there are too many.
func (rc *Receiver) Crowded() bool {
	n := len(rc.Layouts.Known)
	return len(rc.Replicas.Pages) > 0 && rc.AnyState && (n == MaxLayouts || n >= manyLayouts && rc.refreshed%sweepEvery == 0)
}

// SweepLayouts forgets unused layouts, and held states that are no longer needed. used has the layouts that are used
// elsewhere; it is added to.
func (rc *Receiver) SweepLayouts(used map[*Layout]bool) {
	used[rc.Bare] = true
	for _, page := range rc.Replicas.Pages {
		for i := range page {
			m := &page[i]
			m.Held.Tidy(delta.Tick(rc.NearTick), rc.Keep)
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

package replication

import (
	"errors"

	"github.com/arche-replicate/arche-replicate/bitbuf"
	"github.com/arche-replicate/arche-replicate/delta"
	"github.com/arche-replicate/arche-replicate/replication/internal/archeutil"
	"github.com/arche-replicate/arche-replicate/replication/internal/compact"
	"github.com/arche-replicate/arche-replicate/replication/internal/config"
	"github.com/arche-replicate/arche-replicate/replication/internal/schema"
	"github.com/arche-replicate/arche-replicate/replication/internal/snapshot"
	"github.com/arche-replicate/arche-replicate/replication/internal/wire"
)

// receiver is what a client received: the states of every slot, which may serve as baselines, and what is to be acknowledged.
// It knows no world.
type receiver struct {
	schema *schema.Schema
	stats  *clientCounters

	keep      delta.Tick
	refreshed uint32 // pages of mirrors looked after so far
	nearTick  uint32 // to complete sequences and ticks with
	stateTick uint32 // of the newest state packet of any session
	anyState  bool
	window    wire.ReceiveWindow
	nearSeq   uint32
	ackedUpTo [2]uint32 // newest sequences in the last two acks sent

	mirrors  mirrorTable
	shapes   shapes
	bare     *shape // of facets without components
	staged   staging
	freeWork config.WorkBound // of a packet; another one in tests
	parts    map[uint32]*assembly
	dirty    []uint32
	missing  []wire.MissingBaseline
	newAcks  bool

	packed  *delta.Packed
	compact *compact.CompactReader // nil: the session is Packed
	out     []byte
	ack     wire.Ack
}

func newReceiver(s *schema.Schema, stats *clientCounters, slots uint32, relations delta.Set) receiver {
	rc := receiver{
		schema: s, stats: stats,
		shapes:   shapes{schema: s, rows: new(archeutil.RowPool), relations: relations, known: map[delta.Set]*shape{}},
		mirrors:  mirrorTable{limit: slots},
		staged:   staging{schema: s, resources: archeutil.ResourcesOf(s)},
		parts:    map[uint32]*assembly{},
		packed:   delta.NewPacked(s.Layout),
		out:      make([]byte, 512),
		freeWork: config.FreeWork,
	}
	rc.bare = bareShape(s, &rc.shapes)
	return rc
}

// begin makes nothing known of what the session sends.
func (rc *receiver) begin(m *wire.Welcome) {
	rc.compact = nil
	if m.Compact {
		rc.compact = compact.NewCompactReader(rc.schema)
	}
	rc.keep = 2 * delta.Tick(m.Window)
	rc.nearSeq, rc.nearTick = m.Sequence, m.Tick
	rc.ackedUpTo = [2]uint32{m.Sequence - 1, m.Sequence - 1}
	rc.window = wire.NewReceiveWindow(m.Sequence)
	rc.anyState, rc.newAcks = false, false
	rc.missing = rc.missing[:0]
	clear(rc.parts)
	rc.forgetStates()
}

// errOutdated is the error of a state packet after which nothing of the session is known any more.
var errOutdated = errors.New("replication: what the client knows is too old")

// stateTaken reports whether a state packet with that error counts as received.
func stateTaken(err error) bool {
	return err == nil || errors.Is(err, ErrMissingBaseline) || errors.Is(err, ErrMissingModel)
}

// receive takes a packet with state, of which the body is without its checksum. What becomes of it the error tells, see stateTaken.
func (rc *receiver) receive(packet, body []byte, key wire.Key) (wire.StateHeader, error) {
	h, rest, pad, ok := wire.ParseStateHeader(body, rc.nearSeq, rc.nearTick)
	if !ok {
		return h, wire.ErrMalformed
	}
	if !key.Matches(packet, h.Sequence, h.Tick) {
		return h, wire.ErrChecksum
	}
	if !rc.window.Fresh(h.Sequence) {
		return h, wire.ErrStale
	}
	err := rc.decodeBody(rest, pad, h.Sequence, delta.Tick(h.Tick))
	if !stateTaken(err) {
		return h, err
	}
	if rc.anyState && rc.outdated(h.Tick) { // and so may be what the packet is about
		rc.forgetStates()
		return h, errOutdated
	}
	rc.stats.Packets++
	rc.stats.Bytes += uint64(len(packet))
	rc.window.Add(h.Sequence, err == nil)
	rc.nearSeq = rc.window.Newest
	if !rc.anyState || int32(h.Tick-rc.nearTick) > 0 {
		rc.nearTick, rc.stateTick = h.Tick, h.Tick
	}
	rc.anyState, rc.newAcks = true, true
	return h, err
}

// commit takes the staged entries over. The mirrors' newest states are what Apply shows.
func (rc *receiver) commit(now delta.Tick) error {
	s := &rc.staged
	if rc.anyState && delta.Tick(rc.nearTick).After(now) {
		now = delta.Tick(rc.nearTick)
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
func (rc *receiver) commitEntry(e *stagedEntry, now delta.Tick) {
	m := rc.mirrors.add(e.slot)
	newer := !m.any || e.tick.After(m.newest)
	if e.shape != nil {
		h := m.held.put(e.tick, now, rc.keep)
		if h == nil {
			rc.stats.Outdated++
			return
		}
		h.generation = e.generation
		h.hold(e.shape, rc.staged.words[e.first:][:e.shape.words])
	}
	if !newer {
		rc.stats.Outdated++
		return
	}
	m.newest, m.any, m.empty = e.tick, true, e.shape == nil
	if a := rc.parts[e.slot]; a != nil && !a.tick.After(e.tick) {
		delete(rc.parts, e.slot) // an older state: nobody waits for it any more
	}
	if !m.dirty {
		rc.markDirty(e.slot, m)
	}
}

// markDirty notes that a mirror's newest state is to be shown.
func (rc *receiver) markDirty(slot uint32, m *mirror) {
	m.dirty = true
	rc.dirty = append(rc.dirty, slot)
}

// writeAcks acknowledges what came since the last time, and what came before once more. The packet is valid until the next one.
func (rc *receiver) writeAcks(key wire.Key) (packet []byte) {
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
	a.Lacks = copy(a.Missing[:], rc.missing)
	rc.missing = rc.missing[:0]
	from := key.Size()
	w := bitbuf.NewWriter(rc.out[from:])
	a.Write(&w)
	packet = rc.out[:from+len(w.Bytes())]
	key.Write(packet, 0, 0)
	rc.newAcks = false
	rc.stats.Acks++
	return packet
}

// ready reports whether the world shows all that a message waits for.
func (rc *receiver) ready(deps []wire.Dependency) bool {
	for _, d := range deps {
		if m := rc.mirrors.at(d.Slot); m == nil || !m.any || m.newest.Before(d.Tick) {
			return false
		}
	}
	return true
}

// comparable returns the newest state of a slot if it is one from the last so many ticks up
// to the given one, or nil.
func (rc *receiver) comparable(slot uint32, tick delta.Tick, age uint64) *heldState {
	m := rc.mirrors.at(slot)
	// An empty slot tells nothing: the entity may have gone out of view and come back.
	if m == nil || !m.any || m.empty || uint64(tick-m.newest) > age {
		rc.stats.HashesPassed++
		return nil
	}
	return m.held.at(m.newest)
}

// generationSpan is how many ticks after the last state that it got a client can be sure that
// a slot with the same generation still means the same entity: half of what it takes until a
// generation comes again at the earliest. Each of the 65,536 lives of a slot until then takes 2
// ticks or more, see freeslots.go.
const generationSpan = 1 << 16

// outdated reports whether at a tick of the server's, what the client shows may mean other
// entities.
func (rc *receiver) outdated(tick uint32) bool {
	return int32(tick-rc.stateTick) > generationSpan
}

// forgetStates makes nothing known of any slot but what the world shows.
func (rc *receiver) forgetStates() {
	rc.dirty = rc.dirty[:0]
	for _, page := range rc.mirrors.pages {
		for j := range page {
			m := &page[j]
			m.held.release()
			m.held, m.any, m.empty, m.dirty = heldStates{}, false, false, false
		}
	}
}

// forgetMirrors forgets all.
func (rc *receiver) forgetMirrors() { rc.mirrors.pages, rc.dirty = nil, nil }

// refresh keeps the ticks of mirrors that rest for months within reach of serial
// arithmetic: it is forgotten when the last word of them came, so that the server's next one is news.
func (rc *receiver) refresh() {
	n := uint32(len(rc.mirrors.pages))
	if n == 0 || !rc.anyState {
		return
	}
	now := delta.Tick(rc.nearTick)
	page := rc.mirrors.pages[rc.refreshed%n]
	rc.refreshed++
	for i := range page {
		m := &page[i]
		if m.any && now-m.newest > snapshot.Ancient && !m.dirty {
			m.any = false
		}
		m.held.refresh(now)
	}
}

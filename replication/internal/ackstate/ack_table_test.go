package ackstate

import (
	"math/bits"
	"math/rand/v2"
	"slices"
	"testing"

	"github.com/arche-replicate/arche-replicate/delta"
	"github.com/arche-replicate/arche-replicate/replication/internal/bitset"
	"github.com/arche-replicate/arche-replicate/replication/internal/replicationtest"
	"github.com/arche-replicate/arche-replicate/replication/internal/snapshot"
	"github.com/mlange-42/arche/ecs"
	"github.com/stretchr/testify/require"
)

// An ackTwin plays random events against an AckTable and keeps a naive record beside it: the
// version of every slot in every tick, and the versions that the peer acknowledged.
type ackTwin struct {
	t        *testing.T
	rng      *rand.Rand
	plain    bool // the fate of every packet is known at once and never revised
	lossless bool // nothing is lost or left out
	slots    snapshot.SlotTable
	acks     AckTable

	first, now delta.Tick
	version    []int          // by slot: incremented by every change
	past       [][]int        // the same by tick, for the ticks that have ended
	epoch      []delta.Tick   // by slot: packets sent before this tick do not count
	came       [][]delta.Tick // by slot: ticks of the packets since then that were acknowledged
	sent       []twinPacket   // at most one per tick, of ticks after Through
	late       []twinPacket   // packets marked lost
	versions   int

	passed        map[delta.Tick]bool // ticks whose missing slots the table knows
	quiet, outage int                 // ticks left in which nothing is sent, or nothing is received
	lost          bool                // packets sent in an outage are lost, not their acks
	starved       bitset.Set          // slots that are never sent
}

type twinPacket struct {
	at         delta.Tick
	mask       bitset.Set
	full, came bool
}

func newAckTwin(t *testing.T, seed uint64, plain bool) *ackTwin {
	a := &ackTwin{t: t, rng: rand.New(rand.NewPCG(seed, 1)), plain: plain, passed: map[delta.Tick]bool{}}
	a.lossless = a.rng.IntN(3) == 0
	a.first = replicationtest.Pick(a.rng, 0, ^delta.Tick(0)-40, 1<<31-40)
	a.now = a.first
	a.slots.InitClasses(0, 0)
	a.slots.Recent.Now = a.now
	a.acks.reset(&a.slots, a.now)
	return a
}

// at returns the version that a slot had at the end of a tick, 0 if there was none.
func (a *ackTwin) at(slot int, at delta.Tick) int {
	if i := at - a.first - 1; i < delta.Tick(len(a.past)) && slot < len(a.past[i]) {
		return a.past[i][slot]
	}
	return 0
}

func (a *ackTwin) changed(slot int) {
	for slot >= len(a.version) {
		a.version, a.epoch, a.came = append(a.version, 0), append(a.epoch, a.now), append(a.came, nil)
	}
	a.versions++
	a.version[slot] = a.versions
}

// trouble starts and ends the events that last several ticks.
func (a *ackTwin) trouble() {
	r := a.rng
	if a.quiet--; r.IntN(40) == 0 {
		a.quiet = r.IntN(80)
	}
	if a.outage--; r.IntN(60) == 0 && !a.plain && a.outage < 0 {
		a.outage, a.lost = r.IntN(80), r.IntN(2) == 0
		for i := range a.sent {
			a.sent[i].came = a.sent[i].came && !a.lost
		}
	}
	if a.starved = a.starved.Grown(a.slots.Len() + 128); r.IntN(30) == 0 && !a.lossless {
		for b := range a.starved {
			a.starved[b] = replicationtest.Pick(r, 0, 0, ^uint64(0), r.Uint64())
		}
	}
}

// tick plays one tick.
func (a *ackTwin) tick(quiet bool) {
	r, s := a.rng, &a.slots
	a.trouble()
	a.now++
	s.Begin(a.now)
	s.Reclaim(a.now)
	for range replicationtest.Pick(r, 0, 0, 0, 1, 2, s.Live/8*r.IntN(8)*r.IntN(2)) {
		if slot := r.IntN(s.Len() + 1); slot < s.Len() && s.Alive.Has(slot) {
			s.Remove(slot, a.now)
			a.changed(slot)
		}
	}
	for n := r.IntN(5) * r.IntN(2) * r.IntN(8); n > 0 && s.Live < 100; n-- {
		a.changed(s.Add(ecs.Entity{}, a.now))
	}
	often := replicationtest.Pick(r, 0, 0.02, 0.3, 1)
	for slot := range a.version {
		if s.Alive.Has(slot) && s.ChangedAt[slot] != a.now && r.Float64() < often {
			s.Touch(slot, a.now)
			a.changed(slot)
		}
	}
	s.List()
	if len(s.Alive) > len(a.acks.None) {
		a.acks.grow(s.Len(), a.now)
	}
	if !a.plain && r.IntN(6) == 0 {
		a.comeLate()
	}
	if a.outage < 0 && (a.plain || r.IntN(3) > 0) {
		a.follow()
	}
	for b, churned := range s.Churned {
		a.endHistory(b, churned)
		a.acks.endHistory(b, churned, a.now)
	}
	if !a.plain && r.IntN(20) == 0 && len(a.version) > 0 {
		slot := r.IntN(len(a.version))
		b, bit := slot>>6, uint64(1)<<(slot&63)
		a.acks.forget(b, bit, a.now+1)
		a.epoch[slot], a.came[slot] = a.now+1, nil
	}
	if !quiet && a.quiet < 0 {
		a.send()
	}
	a.checkCount()
	s.Settle(a.now)
	a.past = append(a.past, slices.Clone(a.version))
	a.check()
}

// checkCount counts block by block what is behind.
func (a *ackTwin) checkCount() {
	s, all, some := &a.slots, 0, 0
	in, except := make(bitset.Set, len(s.Alive)), make(bitset.Set, len(s.Alive))
	for b, alive := range s.Alive {
		in[b], except[b] = a.rng.Uint64(), a.rng.Uint64()&a.rng.Uint64()
		behind := alive & (a.acks.Behind(b) | s.Changed[b])
		all += bits.OnesCount64(behind &^ except[b])
		some += bits.OnesCount64(behind & in[b] &^ except[b])
	}
	require.Equal(a.t, all, a.acks.CountBehind(nil, except))
	require.Equal(a.t, some, a.acks.CountBehind(in, except))
}

func (a *ackTwin) endHistory(b int, mask uint64) {
	for slot := range bitset.Slots(b, mask) {
		a.epoch[slot], a.came[slot] = a.now, nil
	}
}

// send makes a packet of the slots that changed, as a shared packet does, or of any live slots.
func (a *ackTwin) send() {
	r, s := a.rng, &a.slots
	p := twinPacket{at: a.now, mask: slices.Clone(s.Alive), came: (a.lossless || r.IntN(4) > 0) && !(a.outage > 0 && a.lost)}
	if s.ChurnedBlocks.Count() == 0 && a.acks.knowsAll() && r.IntN(3) > 0 {
		copy(p.mask, s.Changed)
		p.full = true
	} else {
		some := r.IntN(2) == 0 && !a.lossless
		for b := range p.mask {
			if p.mask[b] &^= a.starved[b]; some {
				p.mask[b] &= r.Uint64() | r.Uint64()
			}
		}
	}
	a.sent = append(a.sent, p)
}

// follow advances the table tick by tick, as Tracker.follow does.
func (a *ackTwin) follow() {
	t, last := &a.acks, a.now-1
	for t.Through != last && (a.plain || a.rng.IntN(12) > 0) {
		before, to := t.Through, t.Through+1
		if !a.plain && last-before > snapshot.RecentTicks && !slices.ContainsFunc(a.sent, func(p twinPacket) bool { return p.came && last-p.at > snapshot.RecentTicks }) {
			to = last - snapshot.RecentTicks
			for len(a.sent) > 0 && !a.sent[0].at.After(to) {
				a.late, a.sent = append(a.late, a.sent[0]), a.sent[1:]
			}
			held := make(bitset.Set, len(t.None)) // a copy from before
			for b := range held {
				held[b] = a.slots.Alive[b] &^ t.Behind(b)
			}
			t.skipTo(to)
			for b := range held {
				require.Zero(a.t, held[b]&t.Lacks(to, b), "held before and after skipped ticks")
			}
			continue
		}
		for end := before + 1 + delta.Tick(a.rng.IntN(snapshot.MaxPeriod)); to != end && to != last && (len(a.sent) == 0 || a.sent[0].at != to); {
			to++
		}
		a.passed[to] = true
		if len(a.sent) == 0 || a.sent[0].at != to {
			t.pass(to, a.now)
			t.settle(before)
			continue
		}
		p := a.sent[0]
		a.sent = a.sent[1:]
		if !p.came {
			a.late = append(a.late, p)
		}
		if p.came {
			a.note(p)
		}
		if p.full && p.came && to == before+1 && t.lacksNothing(before) {
			t.skip(to)
			continue
		}
		t.pass(to, a.now)
		for b, mask := range p.mask {
			if p.came && mask != 0 {
				t.arrive(b, mask)
			}
		}
		t.settle(before)
	}
}

// note records that the table was given a packet.
func (a *ackTwin) note(p twinPacket) {
	for b, mask := range p.mask {
		for slot := range bitset.Slots(b, mask) {
			if !p.at.Before(a.epoch[slot]) {
				a.came[slot] = append(a.came[slot], p.at)
			}
		}
	}
}

// comeLate delivers a packet that was marked lost.
func (a *ackTwin) comeLate() {
	if len(a.late) == 0 {
		return
	}
	i := a.rng.IntN(len(a.late))
	p := a.late[i]
	a.late = slices.Delete(a.late, i, i+1)
	a.note(p)
	for b, mask := range p.mask {
		if mask != 0 {
			a.acks.arriveLate(b, mask, p.at, a.now)
		}
	}
}

// check compares the table with the record for some slots, at the end of a tick.
func (a *ackTwin) check() {
	t := &a.acks
	for slot := range a.version {
		if !a.slots.Alive.Has(slot) || a.rng.IntN(8) > 0 {
			continue
		}
		holds := func(at delta.Tick, upTo bool) bool {
			return slices.ContainsFunc(a.came[slot], func(c delta.Tick) bool {
				return a.at(slot, c) == a.at(slot, at) && !(upTo && c.After(at))
			})
		}
		last, found := t.Through, false
		for at := t.Through; at != a.first && t.Recent(at); at-- {
			claimed := t.Lacks(at, slot>>6)>>(slot&63)&1 == 0
			require.True(a.t, !claimed || holds(at, false), "slot %d: not held as of tick %d: now %d, through %d, since %d, came %d", slot, at, a.now, t.Through, a.epoch[slot], a.came[slot])
			if a.plain && a.passed[at] {
				require.Equal(a.t, holds(at, true), claimed, "slot %d, as of tick %d: now %d, through %d, since %d, came %d", slot, at, a.now, t.Through, a.epoch[slot], a.came[slot])
			}
			if claimed && !found {
				last, found = at, true
			}
		}
		at, ok := t.Holds(slot)
		require.Equal(a.t, ok, len(a.came[slot]) > 0, "slot %d: is anything held", slot)
		if ok && at != a.first {
			require.True(a.t, holds(at, false), "slot %d: the last tick as of which it is held is not %d", slot, at)
		}
		if ok && found {
			require.False(a.t, at.Before(last), "slot %d: held as of tick %d, not only of %d", slot, last, at)
		}
	}
}

// TestAckTables: the table claims for a peer only what the peer acknowledged, whatever arrives late
// or never. As long as nothing arrives late, it claims everything that was acknowledged.
func TestAckTables(t *testing.T) {
	replicationtest.OneGoroutine(t)
	seed := replicationtest.Seed(t)
	for i := range uint64(replicationtest.TicksOf(400, 60)) {
		a := newAckTwin(t, seed+i, i%3 == 0)
		interval := 1
		for range 150 {
			if a.rng.IntN(20) == 0 {
				interval = replicationtest.Pick(a.rng, 1, 1, 2, 3, 8, 9, 40)
			}
			a.tick(a.rng.IntN(interval) > 0)
		}
	}
}

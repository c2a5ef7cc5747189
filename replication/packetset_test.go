package replication

import (
	"math"
	"testing"

	"github.com/arche-replicate/arche-replicate/delta"
	"github.com/arche-replicate/arche-replicate/replication/internal/ackstate"
	"github.com/arche-replicate/arche-replicate/replication/internal/config"
	"github.com/arche-replicate/arche-replicate/replication/internal/encode"
	"github.com/arche-replicate/arche-replicate/replication/internal/snapshot"
	"github.com/arche-replicate/arche-replicate/replication/internal/wire"
	"github.com/mlange-42/arche/ecs"
	"github.com/stretchr/testify/require"
)

// TestSharedPacketsCarryTheSameAsCachedEntries: without loss, a shared packet has exactly the
// entries that would be assembled one by one, at the same cost by field.
func TestSharedPacketsCarryTheSameAsCachedEntries(t *testing.T) {
	t.Parallel()
	oneGoroutine(t)
	seed := seedOf(t)
	play := func(noSharedPackets bool) (stats ServerStats, peers []PeerStats) {
		r := newSharedRig(t, scaleGame(2000), 5, 0, seed)
		r.server.opts.NoSharedPackets = noSharedPackets
		for range 200 {
			r.tick()
		}
		r.check(t)
		for _, f := range r.fakes {
			peers = append(peers, f.peer.Stats())
		}
		return r.server.Stats(), peers
	}
	with, peersWith := play(false)
	without, peersWithout := play(true)
	require.NotZero(t, with.SharedPackets)
	require.Zero(t, without.SharedPackets)
	require.Equal(t, without.Fields, with.Fields)
	require.Equal(t, without.BaselineAges, with.BaselineAges)
	require.Equal(t, without.Entries, with.Entries)
	for i := range peersWith {
		a, b := &peersWith[i], &peersWithout[i]
		require.Equal(t, b.Updates, a.Updates)
		require.Equal(t, b.FullStates, a.FullStates)
		require.Equal(t, b.InFlight, a.InFlight)
		require.Equal(t, b.UpToDate, a.UpToDate)
		require.InEpsilon(t, float64(b.EntityBits), float64(a.EntityBits), 0.005, "how much gaps take depends on where packets end")
	}
}

// TestLossDoesNotKeepPacketsFromBeingShared: most packets are shared although each peer misses something now and
// then, since what it misses is sent apart.
func TestLossDoesNotKeepPacketsFromBeingShared(t *testing.T) {
	t.Parallel()
	oneGoroutine(t)
	seed := seedOf(t)
	play := func(interval, leastApart int) float64 {
		r := newSharedRig(t, scaleGame(2000), 0, 0, seed)
		r.server.opts.LeastApart = leastApart
		for i := range 6 {
			r.fakes, r.acks = append(r.fakes, connectFake(t, r.server, uint64(i)+1, 4, 0.03)), append(r.acks, nil)
			r.fakes[i].peer.SetSendInterval(interval)
		}
		for range 300 {
			r.tick()
		}
		r.check(t)
		packets := uint64(0)
		for _, f := range r.fakes {
			packets += f.peer.Stats().Packets
		}
		return float64(r.server.Stats().SharedPackets) / float64(packets)
	}
	for _, c := range []struct {
		interval      int
		with, without float64
	}{{1, 0.75, 0.6}, {3, 0.74, 0.735}} {
		require.Greater(t, play(c.interval, config.LeastApart), c.with)
		require.Less(t, play(c.interval, math.MaxInt), c.without)
	}
}

// TestPeersWithSeveralIntervalsShare: each gets what changed since its last turn, from packets that those with the
// same interval and turn share.
func TestPeersWithSeveralIntervalsShare(t *testing.T) {
	r := newSharedRig(t, scaleGame(2000), 0, 0, seedOf(t))
	r.connect(t, 24, 0)
	for i, f := range r.fakes {
		f.peer.SetSendInterval(1 + i%4)
	}
	for range 120 {
		r.tick()
	}
	r.check(t)
	packets := uint64(0)
	for _, f := range r.fakes {
		packets += f.peer.Stats().Packets
	}
	require.Greater(t, r.server.Stats().SharedPackets, packets*2/3)
}

// TestSharedPacketsMixWithOtherPackets: peers that need more than the shared packets get these, or
// spans of them, and everything else.
func TestSharedPacketsMixWithOtherPackets(t *testing.T) {
	t.Parallel()
	seed, shared := seedOf(t), uint64(0)
	for i := range uint64(roundsOf(6, 6, 2)) {
		c := randomChaosConfig(seed + i)
		c.window, c.n, c.ticks = 64, 130, 250
		c.sharedPackets = true
		c.delay, c.jitter, c.loss = min(c.delay, 4), 0, min(c.loss, 0.03)
		if i == 0 { // all peers may use the same shared packets
			c = chaosConfig{seed: seed, n: 130, mtu: 1200, window: 64, grid: 1, workers: 2, ends: 5, delay: 2, ticks: 250, sharedPackets: true}
		}
		msg, a := runChaos(t, c)
		require.Empty(t, msg, "%+v", c)
		shared += a.server.Stats().SharedPackets
	}
	require.NotZero(t, shared)
}

// TestSharedPacketsSkipForgottenBaselines: a slot wakes just before its ticks get too old, so the
// history has no baseline for it. It is the only slot of its block.
func TestSharedPacketsSkipForgottenBaselines(t *testing.T) {
	x := connectedWire(t, testSchema(), WithTimeout(0))
	position, health := ecs.ComponentID[tPosition](x.world), ecs.ComponentID[tHealth](x.world)
	var e []ecs.Entity
	for range 65 {
		e = append(e, x.spawn(position, health))
	}
	step := func() {
		for _, i := range []int{1, 2, 3, 4, 5, 6, 7, 8, 9, 64} {
			(*tPosition)(x.world.Get(e[i], position)).X++
		}
	}
	x.rounds(100)
	step()
	x.rounds(50)
	for x.server.snap.Tick%snapshot.RefreshShare != snapshot.RefreshShare-4*snapshot.RecentTicks-3 {
		x.round()
	}
	x.jump(wire.Ancient)
	for range 2 * snapshot.RecentTicks {
		(*tPosition)(x.world.Get(e[0], position)).Y++
		x.round()
	}
	require.NotZero(t, inStep(&x.peer.acked, 1))
	shared := x.server.Stats().SharedPackets
	var packets [][]byte
	for range 4 { // the last slot is examined in the second tick
		step()
		packets = append(packets, x.replicate()...)
	}
	require.Greater(t, x.server.Stats().SharedPackets, shared)
	x.deliver(packets...)
	x.rounds(20)
	x.requireEqual()
}

// TestAnIdleTickIsNotTakenForASharedPacket: a peer was sent shared packets in every tick and now
// gets an interval. It was not sent the changes of the ticks in between.
func TestAnIdleTickIsNotTakenForASharedPacket(t *testing.T) {
	x := connectedWire(t, testSchema())
	position := ecs.ComponentID[tPosition](x.world)
	e := x.spawn(position)
	move := func() { (*tPosition)(x.world.Get(e, position)).X++ }
	for range 20 {
		move()
		x.round()
	}
	require.True(t, x.peer.out.Relays)
	x.peer.SetSendInterval(20)
	for range 100 {
		move()
		x.round()
		require.Empty(t, heldBy(x.server, x.peer, x.client))
	}
	x.rounds(20)
	x.requireEqual()
	require.Zero(t, x.peer.Stats().MissingBaselines)
}

// TestSharedPacketsAgainstOldBaselines: a baseline may be older than snapshot.RecentTicks, and
// entities may have lost components right after it.
func TestSharedPacketsAgainstOldBaselines(t *testing.T) {
	const interval, delay = 11, 3*11 - 1
	x := connectedWire(t, testSchema(), WithWindow(100))
	position, health := ecs.ComponentID[tPosition](x.world), ecs.ComponentID[tHealth](x.world)
	var e []ecs.Entity
	for range 4 {
		e = append(e, x.spawn(position, health))
	}
	x.peer.SetSendInterval(interval)
	var acks [][][]byte
	removed, reached := false, false
	for tick := range 6 * delay {
		now := x.server.snap.Tick + 1
		remove := !removed && tick > 3*delay && x.peer.acked.LastSend(now) == now-1
		for i, e := range e {
			(*tPosition)(x.world.Get(e, position)).X += 0.1
			if remove && i < 2 {
				x.world.Remove(e, health)
			}
		}
		removed = removed || remove
		packets := x.replicate()
		x.deliver(packets...)
		if acks = append(acks, x.apply()); tick >= delay {
			x.answer(acks[tick-delay]...)
		}
		if len(packets) > 0 {
			x.requireEqual()
		}
		for _, st := range x.server.sender.workers.List[0].Sets.List {
			reached = reached || removed && now-st.Base > snapshot.RecentTicks && st.Slots[0] != 0
		}
	}
	require.True(t, reached)
}

// TestSharedPacketsRepeatNothing: entries of a shared packet are copied into the packets of peers
// that do not get the shared packet itself.
func TestSharedPacketsRepeatNothing(t *testing.T) {
	c := newLoadWorld(t, 200, loadSchema())
	for i := range 3 {
		m := c.join(1, 0)
		if i > 0 { // has packets of its own
			m.peer.SetInterest(Interest{Visible: func(ecs.Entity) bool { return true }})
		}
	}
	for range 60 {
		c.tickAll()
	}
	before := c.server.Stats()
	for range 10 {
		c.tickAll()
	}
	after := c.server.Stats()
	require.EqualValues(t, 10*200*3, after.Entries-before.Entries)
	require.EqualValues(t, 10*200, after.Encoded-before.Encoded)
	require.NotZero(t, after.SharedPackets-before.SharedPackets)
}

// TestMoreSharedPacketsThanTheLimit: entries left out of shared packets are sent all the same.
func TestMoreSharedPacketsThanTheLimit(t *testing.T) {
	most := 0
	play := func(opts ...ServerOption) (hashes []uint64, stats ServerStats) {
		c := newLoadWorld(t, 30, loadSchema(), append(opts, WithBaselineInterval(1))...)
		for i := range 480 {
			m := c.join(i/16, 0.1)
			if m.peer.SetSendInterval(1 + i%16); i%16 == 0 { // otherwise it gets shared packets
				m.peer.SetInterest(Interest{Visible: func(e ecs.Entity) bool { return int(e.ID())%20 != i/16 }})
			}
		}
		for range 90 {
			c.tickAll()
			for i := range c.server.sender.workers.List {
				most = max(most, len(c.server.sender.workers.List[i].Sets.List))
			}
		}
		for _, m := range c.members {
			hashes = append(hashes, m.hash)
		}
		return hashes, c.server.Stats()
	}
	want, stats := play(withoutSharedPackets)
	require.Zero(t, most)
	got, same := play()
	require.Equal(t, encode.MaxPacketSets, most)
	require.Equal(t, want, got)
	require.Equal(t, stats.BaselineAges, same.BaselineAges)
	got, _ = play(WithWorkers(3))
	require.Equal(t, want, got)
}

// TestSpansFitAnyPacket: peers that see much and little copy from the same shared
// packet.
func TestSpansFitAnyPacket(t *testing.T) {
	play := func(opts ...ServerOption) (hashes []uint64) {
		c := newLoadWorld(t, 640, loadSchema(), opts...)
		for i := range 3 {
			c.join(1, 0).peer.SetInterest(Interest{Visible: func(e ecs.Entity) bool { return int(e.ID())%64 < 64>>(2*i) }})
		}
		for range 40 {
			c.tickAll()
		}
		for _, m := range c.members {
			hashes = append(hashes, m.hash)
		}
		return hashes
	}
	require.Equal(t, play(withoutSharedPackets), play())
}

// TestCopiedBlocksFitAnyPacket: a peer that sees two full blocks and little else, and
// one that sees many full blocks, copy them from the same shared packet.
func TestCopiedBlocksFitAnyPacket(t *testing.T) {
	play := func(opts ...ServerOption) (hashes []uint64) {
		c := newLoadWorld(t, 64*42, loadSchema(), opts...)
		for i := range 2 {
			c.join(1, 0).peer.SetInterest(Interest{Visible: func(e ecs.Entity) bool {
				return i == 0 || int(e.ID()) < 130 || int(e.ID())%64 == 3
			}})
		}
		for range 40 {
			c.tickAll()
		}
		for _, m := range c.members {
			hashes = append(hashes, m.hash)
		}
		return hashes
	}
	require.Equal(t, play(withoutSharedPackets), play())
}

// TestBlocksAreNotCopiedAcrossOtherEntries: an entry that no shared packet has, such as a teleport,
// may be the only dirty one of a block between two others.
func TestBlocksAreNotCopiedAcrossOtherEntries(t *testing.T) {
	play := func(opts ...ServerOption) (hash, jumps uint64) {
		c := newLoadWorld(t, 4*64, loadSchema(), opts...)
		m := c.join(1, 0)
		const jumper = 2*64 + 5
		moving := []int{jumper}
		for i := range 64 {
			moving = append(moving, i, 64+i, 3*64+i)
		}
		for i := range 40 {
			p := c.positions[jumper]
			p.X, p.Y, p.Z = float32(90-180*(i%2)), float32(180*(i/2%2)-90), float32(180*(i/3%2)-90)
			c.tick(moving...)
			require.Zero(t, m.peer.acked.Dirty.Count(), "tick %d", i)
		}
		return m.hash, m.peer.Stats().KeyframeFallbacks
	}
	hash, jumps := play()
	require.NotZero(t, jumps)
	want, _ := play(withoutSharedPackets)
	require.Equal(t, want, hash)
}

// TestSharedPacketsReleaseTheirMemory after there were many.
func TestSharedPacketsReleaseTheirMemory(t *testing.T) {
	c := newLoadWorld(t, 70, loadSchema())
	c.join(1, 0)
	cache := &c.server.sender.workers.List[0].Sets
	kept := func() (n int) {
		for _, st := range cache.List[:cap(cache.List)] {
			if st.Slots != nil {
				n++
			}
		}
		return n
	}
	for range 20 {
		c.tickAll()
	}
	for i := range 40 {
		cache.Add(snapshot.BasePair{Base: delta.Tick(i)})
	}
	require.GreaterOrEqual(t, kept(), 40)
	for range 2 * ackstate.ResizeTicks {
		c.tickAll()
	}
	require.LessOrEqual(t, kept(), 2)
	require.NotZero(t, kept())
}

// TestSharedPacketsOfIdleWorkersDoNotCount: with fewer peers than workers some workers are idle,
// and count nothing.
func TestSharedPacketsOfIdleWorkersDoNotCount(t *testing.T) {
	c := newLoadWorld(t, 70, loadSchema(), WithWorkers(3))
	for range 3 {
		c.join(1, 0)
	}
	for range 40 {
		c.tickAll()
	}
	for _, m := range c.members[1:] {
		c.server.Disconnect(m.peer)
	}
	c.members = c.members[:1]
	for range 5 {
		c.tickAll()
	}
	before := c.server.Stats()
	c.tickAll()
	require.EqualValues(t, 70, c.server.Stats().Entries-before.Entries)
}

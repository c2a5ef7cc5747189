package replication

import (
	"math/rand/v2"
	"slices"
	"testing"

	"github.com/arche-replicate/arche-replicate/delta"
	"github.com/mlange-42/arche/ecs"
	"github.com/stretchr/testify/require"
)

const (
	noShift  delta.Shift = 0
	lowerOne delta.Shift = 1
	lowerTwo delta.Shift = 2
)

// drifting are entities of a server that keep their speeds, or not.
type drifting struct {
	*fixture
	rng      *rand.Rand
	position ecs.ID
	all      []ecs.Entity
	speeds   [][3]float32
}

func newDrifting(t testing.TB, n int, opts ...ServerOption) *drifting {
	x := &drifting{fixture: connectedWire(t, testSchema(), opts...), rng: rand.New(rand.NewPCG(seedOf(t), 1))}
	x.position = ecs.ComponentID[tPosition](x.world)
	for range n {
		x.all = append(x.all, x.spawn(x.position))
		x.speeds = append(x.speeds, [3]float32{x.rng.Float32(), x.rng.Float32(), x.rng.Float32()})
	}
	return x
}

// tick moves everything. With jerk, speeds change by up to that.
func (x *drifting) tick(jerk float32) {
	for i, e := range x.all {
		p, v := (*tPosition)(x.world.Get(e, x.position)), &x.speeds[i]
		for j, c := range []*float32{&p.X, &p.Y, &p.Z} {
			v[j] += jerk * (x.rng.Float32() - 0.5)
			if *c += v[j]; *c > 90 || *c < -90 {
				v[j] = -v[j]
			}
		}
	}
	x.round()
}

// TestShiftsFollowTheGame: motion that is steady takes fewer bytes than without a shift, and what the client shows is
// right all the time.
func TestShiftsFollowTheGame(t *testing.T) {
	x := newDrifting(t, 100)
	bytes := func(ticks int, jerk float32) uint64 {
		before := x.peer.Stats().Bytes
		for range ticks {
			x.tick(jerk)
		}
		x.requireEqual()
		return x.peer.Stats().Bytes - before
	}
	for n := 0; x.server.snap.Steady.Shift != lowerTwo; n++ {
		require.Less(t, n, 200)
		bytes(1, 0)
	}
	with, without := bytes(10, 0), uint64(0)
	for range 10 {
		x.server.snap.Steady.Found = noShift // until the next sample
		without += bytes(1, 0)
	}
	require.Less(t, float64(with), 0.95*float64(without))
	for n := 0; x.server.snap.Steady.Shift != noShift; n++ {
		require.Less(t, n, 600)
		bytes(1, 1)
	}
}

// TestAGameIsStableWhileSamplesFindTheSame: until they find something else, which takes some seconds. Meanwhile the
// shift costs a ninth of the bits.
func TestAGameIsStableWhileSamplesFindTheSame(t *testing.T) {
	x := newDrifting(t, 100)
	s := &x.server.snap.Steady
	for n := 0; !s.Stable(); n++ {
		require.Less(t, n, 1000)
		x.tick(0)
	}
	require.Equal(t, lowerTwo, s.Shift)
	for n := 0; s.Stable(); n++ {
		require.Less(t, n, 400)
		x.tick(10)
	}
	x.requireEqual()
}

// TestShiftsSuitAllPeers: with a peer that does not see everything there is no shift, for what it is sent must not depend on
// the rest. As soon as it does, there is.
func TestShiftsSuitAllPeers(t *testing.T) {
	x := newDrifting(t, 100)
	for range 300 {
		x.tick(0)
	}
	require.Equal(t, lowerTwo, x.server.snap.Steady.Shift)
	limited := x.server.Connect(func([]byte) error { return nil })
	limited.SetInterest(Interest{Visible: func(ecs.Entity) bool { return true }})
	x.tick(0)
	require.Equal(t, lowerTwo, x.server.snap.Steady.Shift, "it is not connected yet")
	x.peer.SetInterest(Interest{Visible: func(ecs.Entity) bool { return true }})
	x.tick(0)
	require.Equal(t, noShift, x.server.snap.Steady.Shift)
	x.peer.SetInterest(Interest{})
	x.tick(0)
	require.Equal(t, lowerTwo, x.server.snap.Steady.Shift)
	x.requireEqual()
}

// TestShiftsDoNotDependOnPeers, nor on workers: the same world has the same shifts without any.
func TestShiftsDoNotDependOnPeers(t *testing.T) {
	seed := seedOf(t)
	var worlds []*drifting
	for _, workers := range []int{1, 3} {
		x := newDrifting(t, 70, WithWorkers(workers))
		x.rng = rand.New(rand.NewPCG(seed, 2))
		for i := range x.speeds {
			x.speeds[i] = [3]float32{x.rng.Float32(), x.rng.Float32(), x.rng.Float32()}
		}
		worlds = append(worlds, x)
	}
	for range 4 {
		other := worlds[1].server.Connect(func([]byte) error { return nil })
		other.SetSendInterval(2)
	}
	shifts := map[delta.Shift]bool{}
	for n := range 600 {
		for _, x := range worlds {
			x.tick(float32(n/200) * 0.02)
		}
		require.Equal(t, worlds[0].server.snap.Steady.Shift, worlds[1].server.snap.Steady.Shift)
		shifts[worlds[0].server.snap.Steady.Shift] = true
	}
	require.Greater(t, len(shifts), 1)
}

// tHiddenPlace is seen by owners only.
type tHiddenPlace struct {
	X, Y float32 `repl:"range=-1000:1000,step=0.01"`
}

// TestShiftsAreNotFoundInWhatOwnersSee: what moves under a condition shows in no packet of other peers.
func TestShiftsAreNotFoundInWhatOwnersSee(t *testing.T) {
	schema := testSchema()
	Register[tHiddenPlace](schema, OwnerOnly())
	x := connectedWire(t, schema)
	hidden := ecs.ComponentID[tHiddenPlace](x.world)
	var all []ecs.Entity
	for range 60 {
		all = append(all, x.spawn(ecs.ComponentID[tPosition](x.world), hidden))
	}
	for range 200 {
		for i, e := range all {
			p := (*tHiddenPlace)(x.world.Get(e, hidden))
			p.X, p.Y = p.X+0.3137+float32(i)/97, p.Y-0.1771-float32(i)/193
		}
		x.round()
	}
	require.Equal(t, noShift, x.server.snap.Steady.Found)
}

// TestShiftsDoNotDependOnWhatOwnersSee: nor does it count how much moves under a condition.
func TestShiftsDoNotDependOnWhatOwnersSee(t *testing.T) {
	seed := seedOf(t)
	play := func(hide bool) (shifts []delta.Shift) {
		schema := testSchema()
		Register[tHiddenPlace](schema, OwnerOnly())
		x := connectedWire(t, schema)
		rng := rand.New(rand.NewPCG(seed, 3))
		position, hidden := ecs.ComponentID[tPosition](x.world), ecs.ComponentID[tHiddenPlace](x.world)
		var all, rest []ecs.Entity
		var speeds []float32
		for range 8 {
			all, speeds = append(all, x.spawn(position)), append(speeds, rng.Float32())
		}
		for range 60 {
			rest = append(rest, x.spawn(position, hidden))
		}
		for range 600 {
			for i, e := range all {
				speeds[i] += 0.04 * (rng.Float32() - 0.5)
				p := (*tPosition)(x.world.Get(e, position))
				if p.X += speeds[i]; p.X > 90 || p.X < -90 {
					speeds[i] = -speeds[i]
				}
			}
			for i, e := range rest {
				if hide {
					(*tHiddenPlace)(x.world.Get(e, hidden)).X += float32(i) / 7
				}
			}
			x.round()
			shifts = append(shifts, x.server.snap.Steady.Found)
		}
		return shifts
	}
	without := play(false)
	require.Equal(t, without, play(true))
	require.Contains(t, without, lowerOne)
}

// TestShiftsDoNotDependOnWhatWasHidden: what moved out of a peer's view, and is gone when the peer may see everything,
// shows in no packet.
func TestShiftsDoNotDependOnWhatWasHidden(t *testing.T) {
	seed := seedOf(t)
	play := func(moves bool) (shifts []delta.Shift) {
		x := newDrifting(t, 200)
		x.rng = rand.New(rand.NewPCG(seed, 2))
		for i := range x.speeds {
			x.speeds[i] = [3]float32{x.rng.Float32(), x.rng.Float32(), x.rng.Float32()}
		}
		speeds := slices.Clone(x.speeds)
		hidden := map[ecs.Entity]bool{}
		for i, e := range x.all {
			if hidden[e] = i >= 100; i < 100 || !moves {
				x.speeds[i] = [3]float32{}
			}
		}
		x.peer.SetInterest(Interest{Visible: func(e ecs.Entity) bool { return !hidden[e] }})
		for range 300 {
			x.tick(0)
		}
		for _, e := range x.all[100:] {
			x.world.RemoveEntity(e)
		}
		x.all = x.all[:100]
		x.tick(0)
		x.peer.SetInterest(Interest{})
		x.speeds = speeds
		for range 300 {
			x.tick(0)
			shifts = append(shifts, x.server.snap.Steady.Shift)
		}
		return shifts
	}
	without := play(false)
	require.Equal(t, without, play(true))
	require.Contains(t, without, lowerTwo)
}

// TestSecondBaselinesSuitTheGame: where all keep their speed, second baselines lie farther back, and updates are smaller.
// Not while a peer does not see everything. What the client shows is right all the time.
func TestSecondBaselinesSuitTheGame(t *testing.T) {
	play := func(limited bool) (bytes uint64) {
		x := newDrifting(t, 100)
		if limited {
			x.peer.SetInterest(Interest{Visible: func(ecs.Entity) bool { return true }})
		}
		for n := range 400 {
			was := x.peer.Stats().Bytes
			x.tick(0)
			if n >= 340 {
				bytes += x.peer.Stats().Bytes - was
			}
			if n%50 == 49 {
				x.requireEqual()
			}
		}
		if limited {
			require.EqualValues(t, delta.SecondGrid, x.server.snap.Steady.Span)
			return bytes
		}
		require.Greater(t, x.server.snap.Steady.Span, delta.Tick(delta.SecondGrid))
		require.GreaterOrEqual(t, x.peer.acked.Likely.Base-x.peer.acked.Likely.Second, x.server.snap.Steady.Span)
		x.peer.SetInterest(Interest{Visible: func(ecs.Entity) bool { return true }})
		x.tick(0)
		x.tick(0)
		require.EqualValues(t, delta.SecondGrid, x.server.snap.Steady.Span)
		x.peer.SetInterest(Interest{})
		x.tick(0)
		x.tick(0)
		require.Greater(t, x.server.snap.Steady.Span, delta.Tick(delta.SecondGrid))
		for n := 0; x.server.snap.Steady.Span != delta.SecondGrid; n++ {
			require.Less(t, n, 600)
			x.tick(3)
		}
		x.requireEqual()
		return bytes
	}
	require.Less(t, float64(play(false)), 0.9*float64(play(true)))
}

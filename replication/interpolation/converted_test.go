package interpolation_test

import (
	"math"
	"testing"

	"github.com/mlange-42/arche/ecs"
	"github.com/stretchr/testify/require"

	"github.com/arche-replicate/arche-replicate/replication"
	"github.com/arche-replicate/arche-replicate/replication/internal/replicationtest"
)

// mind is replicated as what is seen of it.
type mind struct {
	x     float64
	plan  []int // of this end only
	inner inner
}

type inner struct {
	mood  float32
	local int // of this end only
}

type mindSeen struct {
	X    float32
	Mood float32
}

// machine has a value that is replicated as another type.
type machine struct {
	X     float32 `repl:"range=-1000:1000,step=0.01"`
	Inner inner
}

type innerSeen struct{ Mood float32 }

// TestConvertedValuesKeepWhatIsLocal: what the user's functions leave alone stays, while the values are shown as of
// another time.
func TestConvertedValuesKeepWhatIsLocal(t *testing.T) {
	g := &game{t: t, rand: newRand(t), profile: profileB, rate: 20, frames: 144, wobble: 0.1}
	g.prepare(replicationtest.Seed(t), func() {
		replication.Register[mind](g.schema, replication.As(
			func(m *mind, s *mindSeen) { s.X, s.Mood = float32(m.x), m.inner.mood },
			func(s *mindSeen, m *mind) { m.x, m.inner.mood = float64(s.X), s.Mood }))
		replication.Register[machine](g.schema, replication.As(
			func(m *inner, s *innerSeen) { s.Mood = m.mood },
			func(s *innerSeen, m *inner) { m.mood = s.Mood }))
	})
	minds, machines := ecs.ComponentID[mind](&g.world), ecs.ComponentID[machine](&g.world)
	ownMinds, ownMachines := ecs.ComponentID[mind](&g.local), ecs.ComponentID[machine](&g.local)
	v := newView(g)
	e := g.world.NewEntity(ecs.ComponentID[replication.Replicated](&g.world), minds, machines)
	g.onTick = func(n int) {
		(*mind)(g.world.Get(e, minds)).x = float64(n)
		*(*machine)(g.world.Get(e, machines)) = machine{float32(n) * 0.3, inner{mood: float32(n)}}
	}
	g.run(2)
	own, _ := g.mirror(e)
	m := func() (*mind, *machine) {
		return (*mind)(g.local.Get(own, ownMinds)), (*machine)(g.local.Get(own, ownMachines))
	}
	a, b := m()
	a.plan, a.inner.local, b.Inner.local = []int{1, 2}, 3, 4
	seen := map[float32]bool{}
	v.after = func(float64) {
		a, b := m()
		require.Equal(t, []int{1, 2}, a.plan)
		require.Equal(t, []int{3, 4}, []int{a.inner.local, b.Inner.local})
		require.InDelta(t, v.time*0.3, b.X, 0.02)
		shown := float32(math.Floor(v.time))
		require.Equal(t, []float32{shown, shown}, []float32{float32(a.x), b.Inner.mood}, "at %v", v.time)
		seen[shown] = true
	}
	g.run(3)
	require.Greater(t, len(seen), 40)

	v.after = func(float64) {
		own, _ = g.mirror(e)
		a, b := m()
		require.Nil(t, a.plan, "gone with the world")
		shown := float32(math.Floor(v.time))
		require.Equal(t, []float32{shown, shown}, []float32{float32(a.x), b.Inner.mood}, "at %v", v.time)
	}
	for range 20 {
		g.local.Reset()
		g.run(0.13)
	}
}

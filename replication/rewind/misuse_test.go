package rewind

import (
	"math"
	"testing"
	"time"

	"github.com/mlange-42/arche/ecs"
	"github.com/stretchr/testify/require"
)

// TestMisuseIsNamed: what package interpolation refuses, a history refuses, too.
func TestMisuseIsNamed(t *testing.T) {
	type pose struct{ Bones [4]float32 }
	type bone struct{ Length float32 }
	g := newGame(t, 1, 20, 0)
	other := newGame(t, 1, 20, 0)
	var view View
	for _, at := range []*game{g, other} {
		require.Positive(t, at.eachView(2, func(v View) {
			if at == g {
				view = v
			}
		}))
	}
	nobody := func(ecs.Entity) {}
	for _, c := range []struct {
		sentence string
		misuse   func()
	}{
		{"there is no History: New makes one", func() { Keep[pose](nil) }},
		{"there is no History: New makes one", func() { _, _ = (*History)(nil).View(g.peer, 1) }},
		{"there is no History: New makes one", func() { (&History{}).Near(view, [3]float64{}, [3]float64{}, nobody) }},
		{"New: an option is nil: leave it out", func() { New(g.server, nil) }},
		{"Near with a view of another history", func() { other.history.Near(view, [3]float64{}, [3]float64{}, nobody) }},
		{"Get of rewind.Position into nil", func() { Get[Position](view, g.mover, nil) }},
		{"Near needs a function", func() { g.history.Near(view, [3]float64{}, [3]float64{}, nil) }},
		{"View of a peer of another server", func() { _, _ = g.history.View(other.peer, 1) }},
		{"Get of rewind.pose, which is neither in the schema nor kept", func() { Get(view, g.mover, &pose{}) }},
		{"Keep of rewind.Position, which is in the schema: views have it without Keep", func() { Keep[Position](g.history) }},
		{"rewind.bone is kept already: call Keep once", func() { Keep[bone](g.history); Keep[bone](g.history) }},
		{"Delay(0s): use 1ms to 3.2s, 64 ticks, the server's window", func() { New(g.server, Delay(0)) }},
		{"Limit(0s): use 1ms to 2.4s, 48 ticks, three quarters of the server's window", func() { New(g.server, Limit(0)) }},
		{"Limit(12ns): use 1ms to 2.4s", func() { New(g.server, Limit(12)) }},
		{"Limit(3s): use 1ms to 2.4s", func() { New(g.server, Limit(3*time.Second)) }},
		{"there is no server: NewServer makes one", func() { New(nil) }},
		{"there is no peer: Server.Connect returns one", func() { _, _ = g.history.View(nil, 1) }},
	} {
		requireSentence(t, c.sentence, c.misuse)
	}
}

// TestViewsWithAnErrorShowNothing: a server that ignores the error of View is not stopped by what a client claims.
func TestViewsWithAnErrorShowNothing(t *testing.T) {
	g := newGame(t, 1, 20, 0)
	e := g.spawn(1)
	g.run(1)
	v, err := g.history.View(g.peer, g.server.Tick()+1000)
	require.ErrorIs(t, err, ErrNoStamp)
	at := Position{X: 7}
	require.False(t, Get(v, e, &at))
	require.Equal(t, Position{X: 7}, at)
	g.history.Near(v, [3]float64{-100, -100}, [3]float64{100, 100}, func(ecs.Entity) { t.Fatal("nobody was shown") })
	later, ok := v.Later(1)
	require.False(t, ok)
	require.Zero(t, later)
	tick, fraction := uint32(v.Time().Tick), v.Time().Fraction
	require.Zero(t, tick)
	require.Zero(t, fraction)
	require.Nil(t, v.Peer())
}

// TestLaterThanAllTicks: serial arithmetic does not take a far future for the past, nor the other way round.
func TestLaterThanAllTicks(t *testing.T) {
	g := newGame(t, 1, 20, 0)
	e := g.spawn(1)
	n := g.eachView(2, func(v View) {
		for _, ticks := range []int{100, math.MaxInt32, math.MaxInt32 - 1, math.MaxInt32/2 + 9, math.MaxInt, math.MinInt} {
			_, ok := v.Later(ticks)
			require.False(t, ok, "%d", ticks)
		}
		for _, ticks := range []int{0, -1, -100, -math.MaxInt32} { // what is too long ago to be known is not found, or at rest
			earlier, ok := v.Later(ticks)
			require.True(t, ok)
			var at Position
			if Get(earlier, e, &at) {
				require.InDelta(t, 1, at.X, 0.01)
			}
		}
	})
	require.Positive(t, n)
}

func requireSentence(t *testing.T, sentence string, misuse func()) {
	t.Helper()
	defer func() {
		t.Helper()
		why, ok := recover().(string)
		require.True(t, ok, "%q: no panic with a sentence", sentence)
		require.Contains(t, why, sentence)
	}()
	misuse()
}

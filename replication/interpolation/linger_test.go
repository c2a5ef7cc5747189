package interpolation_test

import (
	"math"
	"testing"
	"time"

	"github.com/mlange-42/arche/ecs"
	"github.com/stretchr/testify/require"

	"github.com/arche-replicate/arche-replicate/replication"
)

// lastShown spawns an entity that moves by 1 per tick, removes it later, and returns the tick from which on it was
// gone on the server, and that at which the client showed its end. again lets another entity take the slot at once, and
// grouped makes it a member of a group with another entity.
func lastShown(t *testing.T, again, grouped bool, opts ...replication.ServerOption) (end, shown float64) {
	t.Helper()
	g := newGame(t, 3, profile{oneWay: 0.075, jitter: 0.008}, 20, opts...)
	v := newView(g)
	other := g.spawn(place{})
	e := g.spawn(place{})
	if grouped {
		group := g.server.NewGroup()
		group.Add(other)
		group.Add(e)
	}
	var mirror ecs.Entity
	replication.OnDespawn(g.client, func(gone ecs.Entity) {
		require.Equal(t, mirror, gone)
		require.Zero(t, shown, "it goes once")
		shown = v.time
		if !again || len(opts) > 0 {
			at := *(*place)(g.local.Get(gone, g.at.place))
			require.InDelta(t, end-1, at.X, quantum, "it came to its last place")
		}
	})
	g.onTick = func(n int) {
		g.place(other).X = float32(n % 1000)
		switch {
		case n < 100:
			g.place(e).X = float32(n)
		case n == 100:
			end = float64(n)
			g.world.RemoveEntity(e)
		case n == 101 && again:
			g.spawn(place{X: -50})
		}
	}
	v.after = func(float64) {
		if own, ok := g.mirror(e); ok && mirror.IsZero() {
			mirror = own
		}
		if mirror.IsZero() || !g.local.Alive(mirror) || v.time < 20 {
			return
		}
		at := *(*place)(g.local.Get(mirror, g.at.place))
		require.InDelta(t, math.Min(v.time, 99), at.X, quantum)
	}
	g.run(8)
	require.NotZero(t, shown)
	require.False(t, g.local.Alive(mirror))
	return end, shown
}

func TestLingeringEntitiesGoAllOfTheirWay(t *testing.T) {
	end, shown := lastShown(t, false, false)
	require.InDelta(t, end, shown, 0.5)
	end, shown = lastShown(t, true, false)
	require.LessOrEqual(t, shown, end+0.5, "another one has its slot")
	end, shown = lastShown(t, true, false, replication.WithTuning(replication.Tuning{SlotRest: time.Second}))
	require.InDelta(t, end, shown, 0.5, "its slot rests")
	end, shown = lastShown(t, false, true)
	require.InDelta(t, end, shown, 0.5, "its group has the end in all packets until one is acknowledged")
}

// TestShown: entities that come and go all the time, and come into view and leave it, are shown from their first tick
// to their end, though the client has them earlier.
func TestShown(t *testing.T) {
	for _, rest := range []int{0, 20} {
		shownInTime(t, rest)
	}
}

// shownInTime plays with a slot rest.
func shownInTime(t *testing.T, rest int) {
	g := newGame(t, 5, profile{oneWay: 0.075, jitter: 0.008}, 20, replication.WithTuning(replication.Tuning{SlotRest: time.Duration(rest) * time.Second / 20}))
	v := newView(g)
	set := g.server.NewEntitySet()
	g.peer.SetInterest(replication.Interest{Sets: []*replication.EntitySet{set}})
	type life struct{ from, to, until float64 } // in view; until when it was before that
	lives := map[replication.NetID]*life{}
	spawn := func(n int) (ecs.Entity, *life) {
		e, l := g.spawn(place{}), &life{float64(n), math.Inf(1), 0}
		set.Add(e)
		return e, l
	}
	steady, _ := spawn(1)
	shell, seen := spawn(1)
	blinks, blink := spawn(1)
	spark, burns := spawn(1)
	g.onTick = func(n int) {
		g.place(steady).X = float32(n % 100)
		switch n % 15 {
		case 0:
			g.world.RemoveEntity(shell)
			seen.to = float64(n)
			shell, seen = spawn(n)
		case 5:
			set.Remove(blinks)
			blink.to = float64(n)
		case 12:
			set.Add(blinks)
			*blink = life{float64(n), math.Inf(1), blink.to}
		}
		g.world.RemoveEntity(spark) // another one soon has its slot
		burns.to = float64(n)
		spark, burns = spawn(n)
		g.place(shell).X++
		g.place(blinks).Y++
	}
	shown, hidden := 0, 0
	v.after = func(float64) {
		for _, k := range []struct {
			e ecs.Entity
			l *life
		}{{shell, seen}, {blinks, blink}, {spark, burns}} {
			if id, ok := g.server.NetID(k.e); ok {
				lives[id] = k.l
			}
		}
		for id, e := range g.client.Entities() {
			l := lives[id]
			if l == nil || v.time < 40 {
				continue
			}
			want := v.time < l.until || l.from <= v.time && v.time < l.to
			require.Equal(t, want, v.Shown(e), "shown %v, at %.2f of %.0f to %.0f", !want, v.time, l.from, l.to)
			if want {
				shown++
			} else {
				hidden++
			}
		}
	}
	g.run(40)
	require.Greater(t, min(shown, hidden), 500)
	require.False(t, v.Shown(ecs.Entity{}))
	require.False(t, v.Shown(g.local.NewEntity()))
}

// TestAllIsShownWhenASessionBegins: what the client has then does not vanish until its first state is shown.
func TestAllIsShownWhenASessionBegins(t *testing.T) {
	g := newGame(t, 5, profile{oneWay: 0.075}, 20)
	v := newView(g)
	for i := range 10 {
		g.spawn(place{X: float32(i)})
	}
	moving := g.spawn(place{})
	g.onTick = func(n int) { g.place(moving).Y = float32(n % 100) }
	v.after = func(float64) {
		for id, e := range g.client.Entities() {
			require.True(t, v.Shown(e), "%v", id)
		}
	}
	g.run(3)
	for range 3 {
		g.client.Reconnect()
		g.run(3)
		require.Equal(t, 11, count(g))
	}
	late := g.spawn(place{})
	hidden := 0
	v.after = func(float64) {
		if e, ok := g.mirror(late); ok && !v.Shown(e) {
			hidden++
		}
	}
	g.run(2)
	require.Greater(t, hidden, 5)
}

// TestLingeringEntitiesSurviveNothing: neither a reset of the world, nor a new session, nor the end of the client.
func TestLingeringEntitiesSurviveNothing(t *testing.T) {
	for name, then := range map[string]func(g *game){
		"reset":     func(g *game) { g.local.Reset() },
		"reconnect": func(g *game) { g.client.Reconnect() },
		"close":     func(g *game) { g.client.Close() },
	} {
		g := newGame(t, 3, profile{oneWay: 0.075}, 20)
		newView(g)
		all := make([]ecs.Entity, 0, 100)
		for range 100 {
			all = append(all, g.spawn(place{}))
		}
		g.onTick = func(n int) {
			g.place(all[0]).X = float32(n)
			if last := len(all) - 1; n > 40 && last > 10 {
				g.world.RemoveEntity(all[last])
				all = all[:last]
			}
		}
		g.run(3)
		despawned, ended := 0, 0
		replication.OnDespawn(g.client, func(e ecs.Entity) {
			if despawned++; g.client.HasEnded(e) {
				ended++
			}
		})
		require.Less(t, len(all), 90, name)
		require.Greater(t, count(g), len(all), "%s: some linger", name)
		shown, known := count(g), 0
		for _, e := range g.client.Entities() {
			if g.client.HasEnded(e) {
				known++
			}
		}
		require.Positive(t, known)
		g.onTick = func(n int) { g.place(all[0]).X = float32(n) } // no more of them end
		then(g)
		if name == "close" {
			require.Zero(t, count(g))
			require.Equal(t, []int{shown, known}, []int{despawned, ended})
			continue
		}
		g.run(10)
		require.Equal(t, len(all), count(g), name)
		require.Nil(t, g.client.Divergence())
	}
}

// count returns how many replicas the client's world has.
func count(g *game) int {
	filter := ecs.All(ecs.ComponentID[replication.Replica](&g.local))
	q := g.local.Query(&filter)
	defer q.Close()
	return q.Count()
}

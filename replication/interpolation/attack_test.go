package interpolation_test

import (
	"math/rand/v2"
	"testing"
	"time"

	"github.com/mlange-42/arche/ecs"
	"github.com/stretchr/testify/require"

	"github.com/arche-replicate/arche-replicate/replication"
	"github.com/arche-replicate/arche-replicate/replication/internal/replicationtest"
	"github.com/arche-replicate/arche-replicate/replication/interpolation"
)

// secret is replicated through functions of the user.
type secret struct{ at []float32 }

type openly struct{ X float32 }

// TestPanicsOfTheUserLeaveTheWorldUsable: a panic in a function of Custom, of a conversion or of a message, recovered by
// the game, neither leaves the world locked nor ends the play-out.
func TestPanicsOfTheUserLeaveTheWorldUsable(t *testing.T) {
	type boom struct{ N uint32 }
	upset := ""
	fail := func(where string) {
		if upset == where {
			panic("the user's")
		}
	}
	g := &game{t: t, rand: newRand(t), profile: profile{oneWay: 0.05}, rate: 20, frames: 60, wobble: 0.1}
	g.prepare(1, func() {
		replication.RegisterMessage[boom](g.schema)
		replication.Register[secret](g.schema, replication.As(func(s *secret, o *openly) {
			if len(s.at) > 0 {
				o.X = s.at[0]
			}
		}, func(o *openly, s *secret) {
			fail("conversion")
			s.at = append(s.at[:0], o.X)
		}))
	})
	e := g.spawn(place{})
	id := ecs.ComponentID[secret](&g.world)
	g.world.Add(e, id)
	v := newView(g)
	interpolation.Custom(v.Interpolation, func(ecs.Entity, *health, *health, float32) { fail("custom") })
	got := 0
	replication.OnServerMessage(g.client, func(boom) { fail("message"); got++ })
	g.world.Add(e, g.ids.health)
	g.onTick = func(n int) {
		g.place(e).X = float32(n)
		(*secret)(g.world.Get(e, id)).at = []float32{float32(n)}
		if g.peer.Connected() {
			_ = replication.SendToClient(g.peer, boom{})
		}
	}
	g.run(3)
	caught := map[string]int{}
	where := []string{"custom", "conversion", "message"}
	frame, next := 0, 0
	g.around = func(play func()) {
		defer func() {
			if upset != "" && recover() != nil {
				caught[upset]++
				next++
			}
			upset = ""
			require.False(t, g.local.IsLocked())
		}()
		if frame++; frame%4 == 0 {
			upset = where[next%len(where)] // the same again, if no message came in that frame
		}
		play()
	}
	g.run(3)
	for _, w := range where {
		require.Positive(t, caught[w], w)
	}
	g.around = nil
	before := got
	g.run(2)
	require.Greater(t, got, before+20)
	at, _ := g.shown(e)
	require.InDelta(t, v.time, at.X, quantum)
	require.Nil(t, g.client.Verify())
}

// TestMessagesComeWithoutStates: a world without entities has no states to show, but messages are handed over.
func TestMessagesComeWithoutStates(t *testing.T) {
	type boom struct{ N uint32 }
	g := &game{t: t, rand: newRand(t), profile: profile{oneWay: 0.05}, rate: 20, frames: 60, wobble: 0.1}
	g.prepare(1, func() { replication.RegisterMessage[boom](g.schema) })
	newView(g)
	got := uint32(0)
	replication.OnServerMessage(g.client, func(m boom) {
		require.Equal(t, got, m.N)
		got++
	})
	sent := uint32(0)
	g.onTick = func(int) {
		if g.peer.Connected() && replication.SendToClient(g.peer, boom{sent}) == nil {
			sent++
		}
	}
	g.run(20)
	require.Greater(t, got, sent-20)
}

// TestAnyOrderOfCalls calls everything in any order and at any time: nothing panics, time does not go back within a
// session, and afterwards all is shown as it should be.
func TestAnyOrderOfCalls(t *testing.T) {
	replicationtest.OneGoroutine(t)
	for i := range uint64(replicationtest.TicksOf(40, 5)) {
		seed := replicationtest.Seed(t) + i
		r := rand.New(rand.NewPCG(seed, 1))
		g := newSnappingGame(t, seed, profileD, 50, replicationtest.FirstTick(replicationtest.Pick[uint32](r, 1, 1<<31-200, 1<<32-200)))
		g.frames = replicationtest.Pick(r, 144., 60, 20)
		v := &view{g: g, Interpolation: interpolation.Attach(g.client, interpolation.Extrapolate(150*time.Millisecond))}
		interpolation.Into[teleports, drawnTeleports](v.Interpolation)
		var list []ecs.Entity
		born := map[ecs.Entity]int{}
		g.onTick = func(n int) {
			for len(list) < 20 {
				e := g.spawn(place{})
				g.world.Add(e, g.ids.teleports, g.ids.health)
				list, born[e] = append(list, e), n
			}
			if n%7 == 0 {
				k := r.IntN(len(list))
				g.world.RemoveEntity(list[k])
				list = append(list[:k], list[k+1:]...)
			}
			for _, e := range list {
				g.place(e).X = float32(n)
			}
		}
		var last float64
		var sessions uint64
		once := false
		g.onFrame = func(dt float64) {
			d := time.Duration(dt * float64(time.Second))
			switch k := r.IntN(60); k {
			case 0:
				return
			case 1:
				require.NoError(t, g.client.Frame(0))
			case 2:
				require.NoError(t, g.client.Frame(d))
			case 3:
				require.NoError(t, g.client.Frame(time.Duration(r.Int64N(int64(3*time.Second)))))
			case 4:
				g.local.Reset()
			case 5:
				require.NoError(t, g.client.Frame(time.Second/60))
			case 6:
				g.client.Reconnect()
			case 7:
				if r.IntN(10) == 0 {
					require.NoError(t, g.client.Frame(1<<62))
				}
			case 8:
				if !once {
					once = true
					interpolation.Custom(v.Interpolation, func(ecs.Entity, *teleports, *teleports, float32) {})
				}
			}
			at, ok := v.Time()
			if !ok {
				return
			}
			now := float64(g.ticked-1) - float64(int32(g.tick-uint32(at.Tick))) + float64(at.Fraction)
			if s := g.client.Stats().Sessions; s != sessions {
				sessions, last = s, now
			}
			require.GreaterOrEqual(t, now, last, "seed %d", seed)
			last = now
		}
		g.run(20)
		g.onFrame = v.frame
		g.client.Reconnect()
		g.run(10)
		for _, e := range list {
			if at, ok := g.shown(e); ok && v.time < g.newest() && float64(born[e]) < v.time-20 {
				require.InDelta(t, v.time, at.X, 1, "seed %d", seed)
			}
		}
		require.Less(t, v.delay(), 1., "seed %d", seed)
		require.Nil(t, g.client.Verify())
	}
}

// TestWhatComesBackAppearsWhereItIs: an entity that was out of view, or a component that was, is another appearance: it
// neither comes from where it was seen last, nor waits there.
func TestWhatComesBackAppearsWhereItIs(t *testing.T) {
	replicationtest.OneGoroutine(t)
	for _, hidden := range []int{1, 3, 30, 300} { // ticks
		g := &game{t: t, rand: newRand(t), profile: profile{oneWay: 0.05}, rate: 20, frames: 60, wobble: 0.1}
		g.prepare(1, func() { replication.Register[sight](g.schema, replication.OwnerOnly()) })
		yaw := ecs.ComponentID[sight](&g.world)
		e, walker := g.spawn(place{}), g.spawn(place{})
		g.world.Add(e, yaw)
		g.world.Add(e, g.ids.teleports)
		v := newView(g)
		set := g.server.NewEntitySet()
		set.Add(walker)
		set.Add(e)
		g.server.SetOwner(e, g.peer)
		g.peer.SetInterest(replication.Interest{Sets: []*replication.EntitySet{set}})
		turns := 0
		g.onTick = func(n int) {
			switch n % (hidden + 40) {
			case 39:
				if turns++; turns%2 == 0 {
					set.Remove(e)
				} else {
					g.server.SetOwner(e, nil)
				}
			case (39 + hidden) % (hidden + 40):
				set.Add(e)
				g.server.SetOwner(e, g.peer)
				g.place(e).X = 5000 - g.place(e).X
				(*sight)(g.world.Get(e, yaw)).Yaw = 5000 - (*sight)(g.world.Get(e, yaw)).Yaw
			}
			g.place(e).Y, g.place(walker).X = float32(n), float32(n)
		}
		g.run(4)
		local := ecs.ComponentID[sight](&g.local)
		seen := map[float32]int{}
		v.after = func(float64) {
			at, ok := g.shown(e)
			if !ok || turns < 2 {
				return
			}
			if turns%2 == 0 { // it was gone, with all that it has
				require.True(t, at.X == 0 || at.X == 5000, "hidden for %d: %v is in between", hidden, at.X)
			}
			own, _ := g.mirror(e)
			if s := (*sight)(g.local.Get(own, local)); s != nil {
				require.True(t, s.Yaw == 0 || s.Yaw == 5000, "hidden for %d: %v is in between", hidden, s.Yaw)
				seen[s.Yaw]++
			}
		}
		g.run(60)
		require.Len(t, seen, 2)
	}
}

package rewind

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/arche-replicate/arche-replicate/replication"
	"github.com/arche-replicate/arche-replicate/replication/internal/replicationtest"
	"github.com/mlange-42/arche/ecs"
)

// Seat is where somebody is: in the world, or in a car. Bench is the same by a relation.
type (
	Seat struct {
		Of ecs.Entity
		X  float32 `repl:"range=-2000:2000,step=0.01"`
	}
	Bench struct {
		ecs.Relation
		X float32 `repl:"range=-2000:2000,step=0.01"`
	}
)

// TestReferencesOfViewsAreThoseOnTheScreen: what is relative to an entity is judged as it was seen, also where the
// entity changes, and with it in the tick in which the server got it.
func TestReferencesOfViewsAreThoseOnTheScreen(t *testing.T) {
	replicationtest.OneGoroutine(t)
	for _, loss := range []float64{0, 0.1} {
		schema := replication.NewSchema()
		replication.Register[Position](schema)
		replication.Register[Seat](schema)
		replication.Register[Bench](schema)
		replication.RegisterInput[Shot](schema)
		g := newGameOf(t, replicationtest.Seed(t), 30, loss, schema)
		g.playing = false
		g.attach()
		seats, benches := ecs.ComponentID[Seat](g.world), ecs.ComponentID[Bench](g.world)
		ownSeats, ownBenches := ecs.ComponentID[Seat](g.mirror), ecs.ComponentID[Bench](g.mirror)
		cars := []ecs.Entity{g.spawn(1000), g.spawn(500), g.spawn(-200)}
		man := g.world.NewEntity(ecs.ComponentID[replication.Replicated](g.world), seats, benches)
		g.tick = func() {
			s, b := (*Seat)(g.world.Get(man, seats)), (*Bench)(g.world.Get(man, benches))
			if n := g.server.Tick(); n%10 == 0 { // he is at 1000, whatever he sits in
				*s = Seat{X: 1000}
				if n%20 == 0 {
					s.Of = cars[n/20%3]
					s.X -= g.at(s.Of).X
				}
				b.X = s.X
				of := s.Of
				g.world.Relations().Set(man, benches, of)
			}
			if n := g.server.Tick(); n%97 == 0 { // what is referred to ends at times
				car := cars[n/97%3]
				at := g.at(car).X
				g.world.RemoveEntity(car)
				cars[n/97%3] = g.spawn(at)
			}
		}
		type look struct {
			seat   Seat
			bench  Bench
			target ecs.Entity
		}
		screens := map[uint32]look{}
		of := map[ecs.Entity]ecs.Entity{} // the server's entity, by the client's
		g.input = func(tick uint32) {
			for _, car := range cars {
				if m, ok := g.mirrored(car); ok {
					of[m] = car
				}
			}
			m, ok := g.mirrored(man)
			if replication.SetInput(g.client, replication.Tick(tick), Shot{}) == nil && ok {
				l := look{
					*(*Seat)(g.mirror.Get(m, ownSeats)), *(*Bench)(g.mirror.Get(m, ownBenches)),
					g.mirror.Relations().Get(m, ownBenches),
				}
				l.seat.Of, l.target = of[l.seat.Of], of[l.target]
				screens[tick] = l
			}
		}
		all, seen, gone, differ := 0, 0, 0, 0
		g.eachView(60, func(v View) {
			l, ok := screens[uint32(g.server.Tick())+1]
			if _, exact := replication.Input[Shot](g.peer, g.server.Tick()+1); !exact || !ok {
				return
			}
			seat := Seat{Of: man}
			var bench Bench
			require.True(t, Get(v, man, &seat))
			require.True(t, Get(v, man, &bench))
			target, ok := Target[Bench](v, man)
			require.True(t, ok)
			require.Equal(t, seat.Of, target)
			require.Equal(t, l.seat.Of, l.target)
			all++
			switch {
			case g.world.Alive(l.seat.Of):
				seen++
			case !l.seat.Of.IsZero(): // it has ended at the server since
				gone++
				l.seat.Of = ecs.Entity{}
			}
			if seat != l.seat || bench != l.bench {
				differ++
			}
		})
		t.Logf("%2.0f %% loss: %d views, %d with a car, %d with one that has ended, %d differ", 100*loss, all, seen, gone, differ)
		require.Greater(t, all, 1200)
		require.Greater(t, seen, 400)
		require.Greater(t, gone, 10)
		require.LessOrEqual(t, percent(differ, all), 0.5+10*loss)
	}
}

func TestMisuseOfTarget(t *testing.T) {
	g := newGame(t, 1, 30, 0)
	v := View{history: g.history}
	require.PanicsWithValue(t, "rewind: Target of rewind.Bench, which is neither in the schema nor kept: call Keep when the history is made",
		func() { Target[Bench](v, ecs.Entity{}) })
	require.PanicsWithValue(t, "rewind: Target of rewind.Position, which has no target that is replicated: "+
		"embed ecs.Relation, without a tag, and register it", func() { Target[Position](v, ecs.Entity{}) })
	_, ok := Target[Bench](View{}, ecs.Entity{})
	require.False(t, ok)
}

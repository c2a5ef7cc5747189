package replication

import (
	"testing"

	"github.com/mlange-42/arche/ecs"
	"github.com/stretchr/testify/require"
)

type clueless struct{}

func (clueless) Matches(*ecs.Mask) bool { panic("no idea") }

// TestManyTicksThatPanic: a user function panics for many ticks, before any peer is served. The
// server then has sent nothing for more ticks than its history covers, and still makes only true
// claims.
func TestManyTicksThatPanic(t *testing.T) {
	t.Parallel()
	for _, ticks := range []int{1, 30, 31, 32, 33, 63, 64, 65, 66, 67, 80, 97, 200} {
		for _, moves := range []int{1, 2, 40, 100} { // the moving entities move once in so many ticks
			x := connectedWire(t, testSchema(), WithWindow(120))
			position := ecs.ComponentID[tPosition](x.world)
			var entities []ecs.Entity
			for range 20 {
				entities = append(entities, x.spawn(position))
			}
			move := func(i int, by float32) { (*tPosition)(x.world.Get(entities[i], position)).X += by }
			for n := range 8 { // the first ticks are lost
				for i := range entities {
					move(i, float32(i))
				}
				if packets := x.replicate(); n > 3 {
					x.deliver(packets...)
					x.answer(x.apply()...)
				}
			}
			x.rounds(6)
			x.requireEqual()
			for n := range moves { // long enough for everything to be in shared packets
				for i := range entities[:10] {
					move(i, float32(n%(i+3)))
				}
				x.round()
			}
			x.rounds(ticks % 3) // with none, there is a packet whose fate is unknown
			x.peer.SetInterest(Interest{Filter: clueless{}})
			for n := range ticks {
				for i := range 10 {
					if n%moves == i%moves {
						move(i, 1)
					}
				}
				require.PanicsWithValue(t, "no idea", x.server.Replicate)
			}
			x.peer.SetInterest(Interest{})
			for n := range 100 {
				if n < 60 {
					move(n%20, 1)
				}
				x.round()
				require.Empty(t, heldBy(x.server, x.peer, x.client), "%d ticks, %d", ticks, n)
				require.Empty(t, forgottenBy(x.server, x.peer))
			}
			x.requireEqual()
			require.Zero(t, x.peer.Stats().MissingBaselines)
		}
	}
}

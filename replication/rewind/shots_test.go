package rewind

import (
	"fmt"
	"math"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/arche-replicate/arche-replicate/replication"
	"github.com/arche-replicate/arche-replicate/replication/internal/receive"
	"github.com/arche-replicate/arche-replicate/replication/internal/replicationtest"
)

type heldState = receive.HeldState

const (
	halfWidth = 0.4 // of a target, in metres
	aimError  = 0.3 // aims are up to so much beside the edge of a target
)

// verdicts count shots, and on how many the server agrees with the screen.
type verdicts struct {
	shots, asSeen, nearestTick, roundTrip, refused int
}

func percent(n, of int) float64 { return 100 * float64(n) / float64(of) }

// shoot plays a game in which a player shoots at the edge of a target that strafes, as he sees it.
func shoot(t testing.TB, seed uint64, rate, loss, delay, seconds float64) (v verdicts, g *game) {
	g = newGame(t, seed, rate, loss)
	g.exact = false
	g.delay = delay + g.rng.Float64()/rate // every part of a tick
	target := g.spawn(0)
	for i := range 20 {
		g.spawn(float32(10 * i))
	}
	speed, turn, bias := 6.0, 0.0, 0.0
	var places []float64 // of the target, by tick
	verdicts := map[uint32]bool{}
	arrived := map[uint32]float64{} // in ticks, when the input for a tick arrived

	g.input = func(tick uint32) {
		var in Shot
		if m, ok := g.mirrored(target); ok && g.now > 5 && g.rng.IntN(3) == 0 {
			if at, ok := g.screen(m); ok {
				edge := math.Copysign(halfWidth, g.rng.Float64()-0.5)
				in = Shot{Fire: true, Target: m, Aim: at.X + float32(edge+aimError*(2*g.rng.Float64()-1))}
				verdicts[tick] = hits(in.Aim, at.X)
			}
		}
		if replication.SetInput(g.client, replication.Tick(tick), in) != nil {
			delete(verdicts, tick)
		}
	}
	g.received = func() {
		next := g.server.Tick() + 1
		newest := next
		for tick := next; tick < next+30; tick++ {
			if _, ok := replication.Input[Shot](g.peer, tick); ok {
				newest = tick
			}
		}
		for tick := next; tick <= newest; tick++ {
			if arrived[uint32(tick)] == 0 { // if it comes late, with those that were given later, its own packet was lost
				arrived[uint32(tick)] = g.up.arrival*rate - float64(newest-tick)
			}
		}
	}
	g.tick = func() {
		next := g.server.Tick() + 1
		if in, ok := replication.Input[Shot](g.peer, next); ok && in.Fire {
			seen := verdicts[uint32(next)]
			v.shots++
			var at Position
			view, err := g.history.View(g.peer, next)
			switch {
			case err != nil:
				v.refused++
			case !Get(view, target, &at):
				t.Fatal("the target was shown")
			case hits(in.Aim, at.X) == seen:
				v.asSeen++
			}
			if err == nil {
				tick, fraction := uint32(view.Time().Tick), view.Time().Fraction
				if hits(in.Aim, float32(places[tick+uint32(fraction+0.5)])) == seen {
					v.nearestTick++
				}
			}
			// A server without stamps knows when the shot came, the round trip, and about how far play-out is behind. Its
			// mean error is removed, which is all the luck that there is.
			estimate := arrived[uint32(next)] - g.peer.Stats().RoundTrip.Seconds()*g.rate/2 - g.delay*g.rate - bias
			if hits(in.Aim, between(places, estimate)) == seen {
				v.roundTrip++
			}
			if err == nil {
				tick, fraction := uint32(view.Time().Tick), view.Time().Fraction
				bias += (estimate - float64(tick) - float64(fraction)) / 16
			}
		}
		if g.now >= turn {
			speed, turn = -speed, g.now+0.2+0.6*g.rng.Float64()
		}
		p := g.at(target)
		p.X += float32(speed / rate)
		for replication.Tick(len(places)) <= g.server.Tick()+1 {
			places = append(places, float64(p.X))
		}
	}
	g.run(seconds)
	return v, g
}

// between returns the place at a time in ticks, between those at the ticks around it.
func between(places []float64, at float64) float32 {
	low := min(max(int(at), 0), len(places)-2)
	return float32(places[low] + (places[low+1]-places[low])*(at-float64(low)))
}

func hits(aim, x float32) bool { return math.Abs(float64(aim-x)) <= halfWidth }

func TestFigures(t *testing.T) {
	replicationtest.OneGoroutine(t)
	for _, c := range []struct{ loss, delay float64 }{{0, 0.130}, {0.05, 0.165}, {0.2, 0.265}} {
		var all verdicts
		for seed := range uint64(10) {
			v, _ := shoot(t, seed+1, 20, c.loss, c.delay, 100)
			all.shots += v.shots
			all.asSeen += v.asSeen
			all.nearestTick += v.nearestTick
			all.roundTrip += v.roundTrip
			all.refused += v.refused
		}
		fmt.Printf("figure shots_as_seen_percent_loss%.0f %.2f\n", 100*c.loss, percent(all.asSeen, all.shots))
		t.Logf("%d shots at %.0f %% loss: as seen %.2f %%, nearest tick %.1f %%, round-trip estimate %.1f %%, refused %d",
			all.shots, 100*c.loss, percent(all.asSeen, all.shots), percent(all.nearestTick, all.shots),
			percent(all.roundTrip, all.shots), all.refused)
		require.GreaterOrEqual(t, percent(all.asSeen, all.shots), 99.6) // a lost ack of what came in the frame of the input
		require.Less(t, percent(all.nearestTick, all.shots), 95.0, "or the test proves nothing")
		require.Less(t, percent(all.roundTrip, all.shots), 97.0)
	}
	bits := max(stampBits(t, 20, 0), stampBits(t, 20, 0.05), stampBits(t, 20, 0.2), stampBits(t, 60, 0))
	fmt.Printf("figure stamp_bits_per_input %.2f\n", bits)
	require.LessOrEqual(t, bits, 4.0)
}

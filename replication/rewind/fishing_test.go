package rewind

import (
	"math"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/arche-replicate/arche-replicate/replication"
	"github.com/arche-replicate/arche-replicate/replication/internal/replicationtest"
)

// A fisher is a client that shifts its time for a few inputs in a row, now and then.
type fisher struct {
	name   string
	from   float64 // seconds: when it begins
	hitch  float64 // it stands still for so long at 8 seconds, and begins then
	creeps bool    // the shifts begin small and grow
	hold   float64 // it acknowledges nothing for so long, then everything, and shifts its time before that
}

// A catch counts shifted inputs, those of them that got views, and the same of inputs with the right time.
type catch struct{ shifted, free, honest, refused int }

// play returns what became of inputs that were considered in time, and of late ones.
func (f *fisher) play(t *testing.T, seed uint64, rate, loss, shift float64, length int) (inTime, late catch) {
	g := newGame(t, seed, rate, loss)
	g.delay, g.unclamped, g.down.hold = 0.2, true, f.hold
	shifted, jumped := map[uint32]float64{}, map[uint32]bool{}
	left, rest, fps := 0, 0, g.fps
	g.frame = func() {
		if g.fps = fps; f.hitch > 0 && g.now < 8 && g.now+1/fps >= 8 {
			g.fps = 1 / f.hitch
		}
	}
	g.input = func(tick uint32) {
		ready := f.hold == 0 || math.Mod(g.now, f.hold) > f.hold-float64(length+1)/rate
		if rest--; left == 0 && rest < 0 && g.now > max(f.from, 8*min(f.hitch, 1)) && ready {
			left, rest = length, length+6+g.rng.IntN(16)
		}
		if g.shift = 0; left > 0 {
			left--
			if g.shift = shift; f.creeps {
				g.shift *= min(1, g.now/30)
			}
		}
		shifted[tick] = g.shift
		g.show()
		_ = replication.SetInput(g.client, replication.Tick(tick), Shot{})
		g.shift = 0
	}
	look := func(tick uint32, to *catch) {
		_, exact := replication.Input[Shot](g.peer, replication.Tick(tick))
		by, given := shifted[tick]
		if !exact || !given {
			return
		}
		_, err := g.history.View(g.peer, replication.Tick(tick))
		jumps := err != nil && strings.Contains(err.Error(), "jumps")
		if was, seen := jumped[tick]; seen {
			require.Equal(t, was, jumps, "the answer stays the same")
			return
		}
		jumped[tick] = jumps
		switch {
		case g.now < f.from+2:
		case math.Abs(by) >= 0.099:
			to.shifted++
			if err == nil {
				to.free++
			}
		case by == 0:
			to.honest++
			if err != nil {
				to.refused++
			}
		}
	}
	g.tick = func() {
		next := g.server.Tick() + 1
		look(uint32(next), &inTime)
		for back := range uint32(8) {
			look(uint32(next)-1-back, &late)
		}
	}
	g.run(40)
	return inTime, late
}

// TestNeighboursAreNoAlibi: inputs with a time that is shifted by 100 ms or more get no views, also if those beside them
// are shifted as much, whatever came before, and also if they come late. The right ones in between keep theirs.
func TestNeighboursAreNoAlibi(t *testing.T) {
	t.Parallel()
	replicationtest.OneGoroutine(t)
	seed := replicationtest.Seed(t)
	var allLate catch
	for _, f := range []fisher{
		{name: "from the first half second on", from: 0.1},
		{name: "late", from: 8},
		{name: "after a hitch", from: 8, hitch: 1},
		{name: "creeping", from: 0.1, creeps: true},
		{name: "between acknowledgements", from: 0.1, hold: 0.4},
	} {
		for _, shift := range []float64{-0.1, -0.2, -0.4, 0.1, 0.15} {
			var inTime, late catch
			for _, rate := range []float64{20, 60} {
				for _, loss := range []float64{0, 0.2} {
					for _, length := range []int{1, 2, 3} {
						seed++
						a, b := f.play(t, seed, rate, loss, shift, length)
						require.Positive(t, a.shifted)
						require.LessOrEqual(t, a.free, a.shifted/50, "%s, %v s, %v ticks a second, %v in a row, loss %v",
							f.name, shift, rate, length, loss)
						inTime.add(a)
						late.add(b)
					}
				}
			}
			t.Logf("%s, shifted by %3.0f ms: free %d of %d; of the right ones refused %d of %d; if late %+v",
				f.name, 1000*shift, inTime.free, inTime.shifted, inTime.refused, inTime.honest, late)
			require.Greater(t, inTime.shifted, 300)
			require.LessOrEqual(t, inTime.refused, inTime.honest/20)
			allLate.add(late)
		}
	}
	require.Greater(t, allLate.shifted, 100)
	require.LessOrEqual(t, allLate.free, allLate.shifted/50)
	require.LessOrEqual(t, allLate.refused, allLate.honest/20)
}

func (c *catch) add(d catch) {
	c.shifted += d.shifted
	c.free += d.free
	c.honest += d.honest
	c.refused += d.refused
}

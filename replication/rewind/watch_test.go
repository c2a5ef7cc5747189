package rewind

import (
	"math"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/arche-replicate/arche-replicate/replication"
	"github.com/arche-replicate/arche-replicate/replication/internal/replicationtest"
	"github.com/arche-replicate/arche-replicate/replication/internal/seam"
)

// TestFishingIsRefused: a client that shifts its time by 100 ms for a shot gets no view, wherever it shifts it to; the
// honest inputs in between keep theirs.
func TestFishingIsRefused(t *testing.T) {
	replicationtest.OneGoroutine(t)
	for _, rate := range []float64{20, 30, 60} {
		for _, loss := range []float64{0, 0.05, 0.2} {
			g := newGame(t, replicationtest.Seed(t), rate, loss)
			g.delay = 0.2 + loss/2
			g.unclamped = true
			fishes := map[uint32]float64{}
			honest := map[uint32]bool{}
			g.input = func(tick uint32) {
				switch {
				case g.now > 8 && fishes[g.given-1] == 0 && g.rng.IntN(8) == 0:
					g.shift = math.Copysign(0.1, g.rng.Float64()-0.5)
					fishes[tick] = g.shift
				default:
					g.shift = 0
					honest[tick] = true
				}
				g.show()
				_ = replication.SetInput(g.client, replication.Tick(tick), Shot{})
				g.shift = 0
			}
			caught, free, refused, all := 0, 0, 0, 0
			g.tick = func() {
				next := g.server.Tick() + 1
				_, err := g.view()
				if _, exact := replication.Input[Shot](g.peer, next); !exact || g.now < 8 {
					return
				}
				switch {
				case fishes[uint32(next)] != 0 && err == nil:
					free++
				case fishes[uint32(next)] != 0:
					require.ErrorIs(t, err, ErrImplausible)
					caught++
				case honest[uint32(next)]:
					if all++; err != nil {
						refused++
					}
				}
			}
			g.run(60)
			t.Logf("%2.0f ticks a second, %2.0f %% loss: caught %d, missed %d; of %d honest inputs refused %d",
				rate, 100*loss, caught, free, all, refused)
			require.Greater(t, percent(caught, caught+free), 98.0)
			require.Less(t, refused, all/20, "most honest inputs of a cheat are none the worse")
		}
	}
}

// TestADelayThatLastsIsBelieved: after a hitch of the client, its play-out is somewhere else, and stays there.
func TestADelayThatLastsIsBelieved(t *testing.T) {
	for _, by := range []float64{0.1, -0.15} {
		g := newGame(t, 1, 60, 0)
		g.delay = 0.2
		g.run(3)
		jumped := g.now
		g.shift = by
		refused, last := 0, 0.0
		g.tick = func() {
			if _, err := g.view(); err != nil {
				require.ErrorIs(t, err, ErrImplausible)
				refused++
				last = g.now
			}
		}
		g.run(3)
		require.Greater(t, refused, 10)
		require.Less(t, last-jumped, 0.5+0.3, "half a second, and the way of the inputs")
	}
}

// TestSlewingIsFollowed: a play-out may change its delay at the speed at which ours does.
func TestSlewingIsFollowed(t *testing.T) {
	g := newGame(t, 1, 60, 0)
	g.delay = 0.15
	g.run(3)
	refused, views := 0, 0
	g.tick = func() {
		switch t := math.Mod(g.now, 4); { // 0.75 of the usual speed for a while, then 1.05
		case t < 0.5:
			g.shift -= 0.25 / g.rate
		case t < 3:
			g.shift += 0.05 / g.rate
		}
		if _, err := g.view(); err != nil {
			refused++
		}
		views++
	}
	g.run(20)
	require.Greater(t, views, 1000)
	require.Zero(t, refused)
}

// TestImplausibleTimes: what a client can't have seen, because it is newer than what it has acknowledged or older than
// any delay, is refused however steady it is.
func TestImplausibleTimes(t *testing.T) {
	for _, c := range []struct {
		name  string
		shift float64
		want  error
	}{
		{"honest", 0, nil},
		{"the future", 2, ErrImplausible},
		{"newer than acknowledged", 0.5, ErrImplausible},
		{"older than any play-out", -0.45, ErrImplausible},
		{"long ago", -1.2, ErrTooOld},
	} {
		t.Run(c.name, func(t *testing.T) {
			g := newGame(t, 1, 60, 0)
			g.delay, g.shift, g.unclamped = 0.2, c.shift, true
			g.run(3)
			n := 0
			g.tick = func() {
				_, err := g.view()
				require.ErrorIs(t, err, c.want)
				n++
			}
			g.run(1)
			require.Greater(t, n, 50)
		})
	}
}

func TestNoStamp(t *testing.T) {
	g := newGame(t, 1, 60, 0)
	g.playing = false
	_, err := g.view()
	require.ErrorIs(t, err, ErrNoStamp, "before the session")
	g.run(3)
	_, err = g.view()
	require.ErrorIs(t, err, ErrNoStamp, "no play-out")
	g.playing = true
	g.run(1)
	v, err := g.view()
	require.NoError(t, err)
	require.Same(t, g.peer, v.Peer())
	_, err = g.history.View(g.peer, g.server.Tick()+1000)
	require.ErrorIs(t, err, ErrNoStamp, "a tick far ahead")
	g.peer.Disconnect(replication.Reason{})
	_, err = g.view()
	require.ErrorIs(t, err, ErrNoStamp, "the peer is gone")
	require.Empty(t, g.history.watches, "nothing is kept of it")
}

// TestAMissingInputIsSeenLater: like the input that replaces a missing one, the view is that of the input before, but as
// many ticks later.
func TestAMissingInputIsSeenLater(t *testing.T) {
	g := newGame(t, 1, 60, 0)
	g.delay = 0.2
	given := map[uint32]bool{}
	g.input = func(tick uint32) {
		if tick%7 != 0 && replication.SetInput(g.client, replication.Tick(tick), Shot{}) == nil {
			given[tick] = true
		}
	}
	missing := 0
	g.tick = func() {
		next := g.server.Tick() + 1
		v, err := g.view()
		if g.now < 3 {
			return
		}
		require.NoError(t, err)
		if !given[uint32(next)] {
			before, err := g.history.View(g.peer, next-1)
			require.NoError(t, err)
			was := uint32(before.Time().Tick)
			is := uint32(v.Time().Tick)
			require.Equal(t, was+1, is)
			missing++
		}
	}
	g.run(6)
	require.Greater(t, missing, 20)
}

// giveAll makes the client give an input for each tick since the frame before, as clients do that draw fewer frames than
// the server makes ticks. It returns the function that does so.
func (g *game) giveAll() func(tick uint32) {
	last := uint32(0)
	return func(tick uint32) {
		for at := max(last+1, tick-min(tick, 30)); at <= tick; at++ {
			_ = replication.SetInput(g.client, replication.Tick(at), Shot{})
		}
		last = tick
	}
}

// TestSlowClientsAreBelieved: in long frames, acknowledgements come before the inputs or after them by chance.
func TestSlowClientsAreBelieved(t *testing.T) {
	replicationtest.OneGoroutine(t)
	for _, rate := range []float64{20, 60} {
		for _, fps := range []float64{4, 5, 6, 7, 10} {
			for _, loss := range []float64{0, 0.05} {
				g := newGame(t, replicationtest.Seed(t), rate, loss)
				g.fps, g.playing, g.exact = fps, false, false
				g.attach()
				g.input = g.giveAll()
				refused, all := 0, 0
				g.tick = func() {
					if _, exact := replication.Input[Shot](g.peer, g.server.Tick()+1); !exact || g.now < 10 {
						return
					}
					if _, err := g.view(); err != nil {
						refused++
					}
					all++
				}
				g.run(70)
				t.Logf("%v ticks/s, %v frames/s, %v %% loss: refused %d of %d", rate, fps, 100*loss, refused, all)
				require.Greater(t, all, int(40*rate))
				require.Less(t, float64(refused), (0.02+1.6*loss)*float64(all))
			}
		}
	}
}

// TestAFeignedLongFrameIsRefused: a client with short frames gives some inputs in a row the same stamp, of long before, as
// if its frame had taken so long.
func TestAFeignedLongFrameIsRefused(t *testing.T) {
	replicationtest.OneGoroutine(t)
	const length = 12
	g := newGame(t, replicationtest.Seed(t), 60, 0)
	g.delay, g.unclamped = 0.2, true
	feigned, until, stop := map[uint32]bool{}, uint32(0), 0.
	g.input = func(tick uint32) {
		if g.now > 8 && tick > until+180 {
			until, stop = tick+length, g.now
		}
		g.shift = 0
		if tick < until {
			g.shift = stop - g.now - 0.15 // the time stands still, a sixth of a second earlier
			feigned[tick] = true
		}
		g.show()
		_ = replication.SetInput(g.client, replication.Tick(tick), Shot{})
		g.shift = 0
	}
	caught, free := 0, 0
	g.tick = func() {
		next := g.server.Tick() + 1
		if _, err := g.view(); !feigned[uint32(next)] {
			return
		} else if err != nil {
			caught++
		} else {
			free++
		}
	}
	g.run(90)
	t.Logf("caught %d, missed %d", caught, free)
	require.Greater(t, caught, 200)
	require.LessOrEqual(t, free, 1)
}

// TestTimesAheadOfAcknowledgements: on a long way, a time of before the server's tick may still be of after all that the
// client has. It is believed up to a quarter of a second after the first state that the client has not acknowledged.
func TestTimesAheadOfAcknowledgements(t *testing.T) {
	for _, c := range []struct {
		rate  float64
		delay float64 // seconds
		ok    bool
	}{
		{60, 0.3, true},
		{60, 0.1, true},
		{60, -0.02, false},
		{60, -0.15, false},
		{20, 0.2, true},
		{20, -0.1, false},
	} {
		g := newGame(t, 1, c.rate, 0)
		g.up.oneWay, g.down.oneWay, g.up.jitter, g.down.jitter = 0.3, 0.3, 0, 0 // it acknowledges what is 0.6 s old
		g.delay, g.unclamped = c.delay, true
		g.run(5)
		n := 0
		g.tick = func() {
			at, _ := seam.OfPeer(g.peer).Messages.Inputs.Stamp(g.server.Tick() + 1)
			require.False(t, at.Shown.Tick.After(g.server.Tick()), "it is not of the future")
			_, err := g.view()
			if c.ok {
				require.NoError(t, err, "delay %v", c.delay)
			} else {
				require.ErrorIs(t, err, ErrImplausible, "delay %v", c.delay)
				require.ErrorContains(t, err, "is the newest that it has acknowledged")
			}
			n++
		}
		g.run(1)
		require.Positive(t, n)
	}
}

package rewind

import (
	"errors"
	"math"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/arche-replicate/arche-replicate/replication"
	"github.com/arche-replicate/arche-replicate/replication/internal/replicationtest"
)

// An honestPlayer has a connection and a machine.
type honestPlayer struct {
	name     string
	fps      float64                // 0: 144
	frames   func(g *game) float64  // frames per second from now on; nil: always fps
	all      bool                   // it gives inputs for all ticks, also those between frames
	jitter   float64                // seconds; 0: 8 ms
	outage   float64                // seconds without any packet, every 10 seconds
	interval int                    // of states, in ticks
	stops    bool                   // the target stops for two of four seconds
	rests    bool                   // nothing else moves
	most     map[[2]float64]float64 // inputs refused of 10,000, by ticks a second and loss; 0 where it is not listed
}

// play returns how many inputs there were, and how many of them got no view.
func (c *honestPlayer) play(t *testing.T, seed uint64, rate, loss float64) (refused, all int) {
	g := newGame(t, seed, rate, loss)
	g.playing, g.exact, g.resting = false, false, c.rests
	if c.fps > 0 {
		g.fps = c.fps
	}
	if c.jitter > 0 {
		g.up.jitter, g.down.jitter = c.jitter, c.jitter
	}
	if c.interval > 0 {
		g.peer.SetSendInterval(c.interval)
	}
	g.attach()
	if c.all {
		g.input = g.giveAll()
	}
	if c.frames != nil {
		frame := g.frame
		g.frame = func() {
			frame()
			g.fps = c.frames(g)
		}
	}
	e := g.spawn(3)
	g.tick = func() {
		if second := int(g.now); !c.stops || second%4 < 2 {
			g.at(e).X += float32(6/rate) * float32(1-second%8/4*2)
		}
		if g.up.loss, g.down.loss = loss, loss; int(g.now)%10 == 5 && g.now-float64(int(g.now)) < c.outage {
			g.up.loss, g.down.loss = 1, 1
		}
		if _, exact := replication.Input[Shot](g.peer, g.server.Tick()+1); !exact {
			return
		}
		_, err := g.view()
		if all++; errors.Is(err, ErrImplausible) {
			refused++
		}
	}
	g.run(60)
	return refused, all
}

// TestHonestPlayersAreBelieved, whatever their connections and machines do. The limits, per 10,000, are what was refused
// in the mean before neighbours were no alibi any more, and three deviations for chance. Pauses of all packets are the
// exception: they cost an input or two each now, 5 per 10,000 where outages are short, and none before. So do seconds
// in which the client stands still, if it then gives inputs for all the ticks that it missed.
func TestHonestPlayersAreBelieved(t *testing.T) {
	t.Parallel()
	replicationtest.OneGoroutine(t)
	rates, losses := []float64{20, 60}, []float64{0, 0.05}
	play := func(c honestPlayer, rates, losses []float64) {
		for _, rate := range rates {
			for _, loss := range losses {
				refused, all := 0, 0
				for i := range uint64(2) {
					r, n := c.play(t, replicationtest.Seed(t)+i, rate, loss)
					refused, all = refused+r, all+n
				}
				t.Logf("%-24s %3.0f ticks/s, %2.0f %% loss: refused %d of %d", c.name, rate, 100*loss, refused, all)
				require.Greater(t, all, 400)
				usual := c.most[[2]float64{rate, loss}] * float64(all) / 10_000
				require.LessOrEqual(t, float64(refused), usual+3*math.Sqrt(usual), "%s, %v ticks/s, loss %v",
					c.name, rate, loss)
			}
		}
	}
	play(honestPlayer{name: "plain", most: map[[2]float64]float64{{10, 0.05}: 15, {10, 0.2}: 1000}},
		[]float64{10, 20, 30, 60, 128}, []float64{0, 0.05, 0.2})
	for _, c := range []honestPlayer{
		{name: "jitter", jitter: 0.04},
		{name: "30 frames/s", fps: 30},
		{name: "30 frames/s, all ticks", fps: 30, all: true},
		{name: "the target stops", stops: true},
		{name: "the world rests", stops: true, rests: true, most: map[[2]float64]float64{{20, 0}: 5}},
		{name: "states every 3 ticks", interval: 3, most: map[[2]float64]float64{{20, 0.05}: 65}},
		{name: "short outages", outage: 0.3, most: map[[2]float64]float64{{20, 0}: 1, {20, 0.05}: 5, {60, 0}: 5.3, {60, 0.05}: 5.3}},
		{name: "outages", outage: 0.8, most: map[[2]float64]float64{{20, 0}: 20, {20, 0.05}: 20, {60, 0}: 5, {60, 0.05}: 5}},
		{name: "short hitches", frames: hitches(0.3)},
		{name: "hitches", frames: hitches(1)},
		{name: "hitches, all ticks", frames: hitches(1), all: true, most: map[[2]float64]float64{{20, 0}: 40, {20, 0.05}: 40, {60, 0}: 10, {60, 0.05}: 10}},
		{name: "uneven frames", frames: uneven, most: map[[2]float64]float64{{20, 0}: 8, {20, 0.05}: 191}},
		{name: "uneven frames, all ticks", frames: uneven, all: true, most: map[[2]float64]float64{{20, 0}: 704, {20, 0.05}: 690, {60, 0}: 282, {60, 0.05}: 540}},
		{name: "5 frames/s", fps: 5, most: map[[2]float64]float64{{20, 0}: 9, {20, 0.05}: 193}},
		{name: "10 frames/s", fps: 10, most: map[[2]float64]float64{{20, 0.05}: 11}},
		{name: "5 frames/s, all ticks", fps: 5, all: true, most: map[[2]float64]float64{{20, 0}: 8, {20, 0.05}: 177, {60, 0}: 5, {60, 0.05}: 6}},
		{name: "7 frames/s, all ticks", fps: 7, all: true, most: map[[2]float64]float64{{20, 0}: 1, {20, 0.05}: 39, {60, 0}: 9, {60, 0.05}: 20}},
		{name: "10 frames/s, all ticks", fps: 10, all: true, most: map[[2]float64]float64{{20, 0.05}: 12, {60, 0.05}: 12}},
	} {
		play(c, rates, losses)
	}
}

// hitches returns a game's frames, one of which takes so long every ten seconds.
func hitches(seconds float64) func(g *game) float64 {
	return func(g *game) float64 {
		if int((g.now+1/144.)/10) != int(g.now/10) {
			return 1 / seconds
		}
		return 144
	}
}

// uneven is of a game whose frames are short and long in turn.
func uneven(g *game) float64 {
	if g.fps > 100 {
		return 5
	}
	return 144
}

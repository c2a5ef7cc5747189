package timetest

import (
	"fmt"
	"math"
	"testing"

	"github.com/arche-replicate/arche-replicate/replication"
	"github.com/arche-replicate/arche-replicate/replication/internal/replicationtest"
	"github.com/arche-replicate/arche-replicate/replication/netsim"
	"github.com/stretchr/testify/require"
)

// Seed is the one of the figures. They are extremes, which others exceed now and then by a little.
const Seed = 1

// Figures are the worst results of all cases.
type Figures struct {
	ClockErrorTicks     float64 // of the estimate of the server's tick, from 2 s after a change on
	DelaySettledSeconds float64 // from a change until the input delay is what it stays
	StartedSeconds      float64 // the same after the client was made
}

// settings are servers, networks and frames that all cases are played with.
func settings() []setting {
	near := netsim.Config{Latency: 30}
	far := netsim.Config{Latency: 75, Jitter: 12, Loss: 0.02} // 63 to 87 ms
	wrap := []replication.ServerOption{replicationtest.FirstTick(1<<32 - 400)}
	return []setting{
		{tickRate: 60, interval: 1, fps: 60, link: near},
		{tickRate: 60, interval: 3, fps: 60, uneven: 0.1, link: far, options: wrap},
		{tickRate: 20, interval: 1, fps: 60, uneven: 0.1, link: near, options: wrap},
		{tickRate: 20, interval: 1, fps: 60, link: far},
	}
}

// rates are the frame rates of clients.
func rates() []float64 { return []float64{30, 59.94, 60, 75, 144, 240} }

// A measurement is what a client does after a change.
type measurement struct {
	error   float64 // in ticks, from 2 s after the change on
	delay   float64 // the input delay at the end, in ticks
	settled float64 // seconds until the delay was and stayed within sameDelay of that
	missed  int     // ticks of the server without an input
}

// sameDelay is a difference of input delays that does not count, in ticks.
const sameDelay = 2

// measure plays for some seconds after a change.
func (p *play) measure(seconds float64) (m measurement) {
	type sample struct{ at, delay float64 }
	var samples []sample
	from, missed := p.now, p.missed
	p.run(seconds, func() {
		at := (p.now - from) / 1000
		if at > 2 {
			m.error = max(m.error, p.off())
		}
		if p.gives {
			samples = append(samples, sample{at, p.client.Stats().InputDelay.Seconds() * 1000 / p.tickLength})
		}
	})
	n := 0.0
	for _, s := range samples {
		if s.at > seconds-1 {
			m.delay += s.delay
			n++
		}
	}
	m.delay /= n
	for _, s := range samples {
		if math.Abs(s.delay-m.delay) > sameDelay {
			m.settled = s.at
		}
	}
	m.missed = p.missed - missed
	return m
}

// Play plays all cases and returns the worst results. It fails on what no figure shows: inputs that are
// missed for no reason, a delay that stays large after a pause, times that go back.
func Play(t testing.TB, seed uint64) (worst Figures) {
	for i, s := range settings() {
		p := newPlay(t, seed+uint64(i), &s)
		what := fmt.Sprintf("%d ticks per second, every %d sent, %v ms", s.tickRate, s.interval, s.link.Latency)
		note := func(change string, m measurement) {
			t.Logf("%s: %s: clock off by %.2f ticks, input delay %.1f ticks, settled after %.2f s, %d missed",
				what, change, m.error, m.delay, m.settled, m.missed)
			worst.ClockErrorTicks = max(worst.ClockErrorTicks, m.error)
			worst.DelaySettledSeconds = max(worst.DelaySettledSeconds, m.settled)
		}
		start := p.measure(4)
		worst.StartedSeconds = max(worst.StartedSeconds, start.settled)
		note("start", start)
		p.playRates(note)
		p.playPauses(s.link, note)
		p.playPaths(s.link, note)
	}
	return worst
}

// PlaySlow plays clients with few frames per second, and returns the largest share of inputs that were missed.
func PlaySlow(t testing.TB, seed uint64) (worst float64) {
	for _, c := range []struct {
		tickRate    int
		fps, second float64
	}{
		{30, 7.5, 0},
		{30, 6, 0},
		{30, 5, 0},
		{20, 4, 0},
		{10, 2, 0},
		{30, 5, 16},
		{30, 7, 33},
		{20, 5, 100},
		{20, 4, 8},
		{128, 16.0 / 3, 0}, // frames of 24 ticks
		{60, 3, 0},
	} {
		for _, s := range settings() {
			s.tickRate, s.interval, s.fps, s.second, s.options = c.tickRate, 1, c.fps, c.second, nil
			p := newPlay(t, seed, &s)
			p.run(40, nil)
			asked, missed := p.asked, p.missed
			p.run(30, nil)
			share := float64(p.missed-missed) / float64(p.asked-asked)
			t.Logf("%d ticks and %v frames per second, every second one of %v ms, a path of %v ms: %.2f %% missed",
				c.tickRate, c.fps, c.second, s.link.Latency, 100*share)
			worst = max(worst, share)
		}
	}
	return worst
}

// A Rate is how a client does whose server ticks at another rate than it should.
type Rate struct {
	Wait   float64 // seconds from giving an input to its tick, in the mean
	Missed float64 // share of ticks without an input
	Error  float64 // of the estimate of the server's tick, in ticks, at most
}

// Add adds another one of n to a mean. Of the errors, the largest counts.
func (r *Rate) Add(o Rate, n float64) {
	r.Wait, r.Missed, r.Error = r.Wait+o.Wait/n, r.Missed+o.Missed/n, max(r.Error, o.Error)
}

// PlayServerRate plays a server that holds its rate, makes share of its ticks for some seconds, and holds its rate
// again. It measures before; from known seconds after the change on; and again from 3 seconds after the second one on.
func PlayServerRate(t testing.TB, seed uint64, rate int, share, known float64) (before, off, again Rate) {
	link := netsim.Config{Latency: 40, Jitter: 8, Loss: 0.01}
	p := newPlay(t, seed, &setting{tickRate: rate, interval: 1, fps: 60, uneven: 0.05, link: link})
	p.run(6, nil)
	before = p.measureRate(6)
	exact := p.tickLength
	p.tickLength = exact / share
	p.run(known, nil)
	off = p.measureRate(10)
	p.tickLength = exact
	p.run(3, nil)
	return before, off, p.measureRate(5)
}

// PlayQueue plays a path down on which a queue grows evenly by so many milliseconds in some seconds, and drains again,
// each 10 seconds. The server's ticks have their rate.
func PlayQueue(t testing.TB, seed uint64, most, grows, drains float64) (m Rate) {
	link := netsim.Config{Latency: 40, Jitter: 8, Loss: 0.01}
	p := newPlay(t, seed, &setting{tickRate: 60, interval: 1, fps: 60, uneven: 0.05, link: link})
	p.run(10, nil)
	asked, missed, waited := p.asked, p.missed, p.waits.sum
	for i := range 600 {
		at := math.Mod(float64(i)/10, 10)
		queued := link
		queued.Latency += most * max(min(at/grows, (grows+drains-at)/drains), 0)
		p.link.Down.SetConfig(queued)
		p.run(0.1, func() { m.Error = max(m.Error, p.off()) })
	}
	asked, missed = p.asked-asked, p.missed-missed
	return Rate{(p.waits.sum - waited) / 1000 / float64(asked-missed), float64(missed) / float64(asked), m.Error}
}

// PlayUnsteadyRate plays a server of 60 ticks per second that makes each of some shares of them for some seconds, in
// turns.
func PlayUnsteadyRate(t testing.TB, seed uint64, seconds float64, shares ...float64) (m Rate) {
	link := netsim.Config{Latency: 40, Jitter: 8, Loss: 0.01}
	p := newPlay(t, seed, &setting{tickRate: 60, interval: 1, fps: 60, uneven: 0.05, link: link})
	p.run(5, nil)
	exact := p.tickLength
	for range 10 {
		for _, share := range shares {
			p.tickLength = exact / share
			of := p.measureRate(seconds)
			m.Wait, m.Missed = m.Wait+of.Wait/float64(10*len(shares)), m.Missed+of.Missed/float64(10*len(shares))
		}
	}
	return m
}

// measureRate plays for some seconds.
func (p *play) measureRate(seconds float64) (m Rate) {
	asked, missed, waited := p.asked, p.missed, p.waits.sum
	p.run(seconds, func() { m.Error = max(m.Error, p.off()) })
	asked, missed = p.asked-asked, p.missed-missed
	return Rate{(p.waits.sum - waited) / 1000 / float64(asked-missed), float64(missed) / float64(asked), m.Error}
}

// playRates changes between all frame rates.
func (p *play) playRates(note func(string, measurement)) {
	change := func(from, to float64) {
		p.setFPS(to)
		m := p.measure(3)
		what := fmt.Sprintf("from %v to %v frames per second", from, to)
		note(what, m)
		// The first frames that are longer come late: the client can't know of them before.
		require.LessOrEqual(p.t, float64(m.missed), max(2, 3*p.frameLength/p.tickLength), what)
	}
	last := 60.
	for i, a := range rates() {
		for _, b := range rates()[:i] {
			change(last, a)
			change(a, b)
			last = b
		}
	}
	change(last, 60)
}

// playPauses lets the client pause, and the server.
func (p *play) playPauses(link netsim.Config, note func(string, measurement)) {
	for _, seconds := range []float64{0.5, 2, 30} {
		before := p.measure(3)
		// After a pause, the next packet takes its time, and so do the inputs that are right again. The client
		// skips what is too late.
		missed := 2*(link.Latency+link.Jitter)/p.tickLength + before.delay + 10
		for _, pause := range []struct {
			what string
			do   func()
		}{
			{"the client pauses", func() { p.pauseClient(seconds) }},
			{"the server pauses", func() { p.pauseServer(seconds, false) }},
			{"the server pauses and catches up", func() { p.pauseServer(seconds, true) }},
		} {
			pause.do()
			m := p.measure(4)
			what := fmt.Sprintf("%s for %v s", pause.what, seconds)
			note(what, m)
			require.LessOrEqual(p.t, float64(m.missed), missed, "%s: what is missed belongs to the pause", what)
			require.InDelta(p.t, before.delay, m.delay, 2*sameDelay, what)
		}
	}
}

// playPaths changes the network.
func (p *play) playPaths(link netsim.Config, note func(string, measurement)) {
	skipped := p.skipped
	longer := link
	longer.Latency += 80
	p.link.SetConfig(longer)
	note("80 ms longer", p.measure(4))
	p.link.SetConfig(link)
	note("80 ms shorter", p.measure(4))
	burst := link
	burst.Jitter += 60
	burst.Latency += 60
	p.link.SetConfig(burst)
	p.run(0.5, nil)
	p.link.SetConfig(link)
	note("after a burst of jitter", p.measure(4))
	require.Equal(p.t, skipped, p.skipped, "the delay changes bit by bit: no tick is left out")
}

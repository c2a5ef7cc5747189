package clock

import (
	"testing"

	"github.com/stretchr/testify/require"
)

// An intervalPlay is a server with a send interval, whose packets all arrive in time.
type intervalPlay struct {
	interval Interval
	tick     uint32
}

func newIntervalPlay(ticks uint32) *intervalPlay {
	p := &intervalPlay{tick: 1<<32 - 90}
	p.interval.Begin(ticks)
	p.interval.Arrive(p.tick, playRate, true)
	return p
}

const playRate = 60

// send sends n packets, each in so many ticks after the one before.
func (p *intervalPlay) send(n int, ticks uint32, settled bool) {
	for range n {
		p.tick += ticks
		p.interval.Arrive(p.tick, playRate, settled)
	}
}

// TestSparseChangesAreNoInterval: gaps before settled packets mean that nothing changed, from the welcome on.
func TestSparseChangesAreNoInterval(t *testing.T) {
	p := newIntervalPlay(1)
	for range 5 {
		p.send(200, 20, true)
		p.send(longGaps-1, 20, false) // such as those that contain what was lost
	}
	require.EqualValues(t, 1, p.interval.Ticks)
	p.send(200, 1, false)
	p.send(200, 20, true)
	require.EqualValues(t, 1, p.interval.Ticks)
}

// TestTheIntervalBecomesLonger with packets that are not settled: these are the first ones after a change.
func TestTheIntervalBecomesLonger(t *testing.T) {
	p := newIntervalPlay(1)
	p.send(64, 3, false)
	require.EqualValues(t, 3, p.interval.Ticks)
	p.send(64, 5, true)
	require.EqualValues(t, 3, p.interval.Ticks)
	p.send(2, 1, true)
	require.EqualValues(t, 1, p.interval.Ticks)
}

// TestTheIntervalBecomesLongerUnseen: in a world at rest, gaps show nothing. So they count later, settled or not.
func TestTheIntervalBecomesLongerUnseen(t *testing.T) {
	p := newIntervalPlay(1)
	p.send(64, playRate, false)
	p.send(10, playRate, true)
	require.EqualValues(t, 1, p.interval.Ticks)
	p.send(longGaps, 3, true)
	require.EqualValues(t, 3, p.interval.Ticks)
	p.send(200, 20, true)
	require.EqualValues(t, 3, p.interval.Ticks)
}

// TestTheIntervalBecomesLongerWithSeveralPacketsPerTick: those that are not settled are soon over then.
func TestTheIntervalBecomesLongerWithSeveralPacketsPerTick(t *testing.T) {
	p := newIntervalPlay(1)
	send := func(ticks int, settled bool) {
		for range ticks {
			p.send(1, 3, settled)
			p.send(7, 0, settled)
		}
	}
	send(100, true)
	require.EqualValues(t, 1, p.interval.Ticks)
	send(64/8, false)
	p.interval.Arrive(p.tick-30, playRate, true) // late, from before
	send(longGaps, true)
	require.EqualValues(t, 3, p.interval.Ticks)
}

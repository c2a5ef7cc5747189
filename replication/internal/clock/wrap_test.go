package clock

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/arche-replicate/arche-replicate/delta"
)

// TestTimeGoesOnWhereTheClientsTicksWrap: the client's own time passes 2^32 ticks in a session, after 49 days at 1000
// ticks per second. The estimate of the server's tick and the tick of inputs go on as before.
func TestTimeGoesOnWhereTheClientsTicksWrap(t *testing.T) {
	const rate, trip = 1000, 8
	var c Ticks
	var l InputDelay
	c.Begin(1<<31, rate)
	tick := uint32(1 << 31)
	pass := func(ticks uint32) {
		tick += ticks
		c.NoteReceived(tick-trip/2, c.Now+ticks-trip, 0)
		l.Judge(1, delta.Tick(l.Tick()))
		c.StartFrame(time.Duration(ticks) * time.Second / rate)
		l.Follow(&c)
		c.NoteSent()
		c.Passed()
		c.EndFrame()
	}
	play := func(ticks int) (inputDelay float64) {
		for range ticks {
			input := l.Tick()
			pass(1)
			require.LessOrEqual(t, l.Tick()-input, uint32(2))
			require.InDelta(t, 0, float64(int32(c.Tick()-tick)), 1.5)
		}
		return l.Ticks(&c)
	}
	for range 2000 {
		pass(1)
	}
	play(2000)
	const hour = 3600 * rate
	for passed := uint64(c.Now); passed+hour+5000 < 1<<32; passed += hour {
		pass(hour)
	}
	for c.Now < 1<<32-5000 {
		pass(1000)
	}
	for range 1000 {
		pass(1)
	}
	before := play(2000)
	require.Greater(t, c.Now, uint32(1<<32-4000))
	require.InDelta(t, before, play(8000), 1)
	require.Less(t, c.Now, uint32(1<<31), "it has wrapped")
	require.Greater(t, c.time(), float64(1<<32))
	c.Begin(7, rate)
	require.Zero(t, c.time())
}

package wire

import (
	"math/rand/v2"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/arche-replicate/arche-replicate/bitbuf"
	"github.com/arche-replicate/arche-replicate/delta"
	"github.com/arche-replicate/arche-replicate/replication/internal/replicationtest"
)

// TestStampsComeBack codes stamps of every precision, of steady delays and of any, across the wrap of
// ticks.
func TestStampsComeBack(t *testing.T) {
	rng := rand.New(rand.NewPCG(replicationtest.Seed(t), 1))
	for range 2000 {
		precision := uint8(rng.IntN(stampBits + 1))
		tick := replicationtest.Pick(rng, 0, ^delta.Tick(5), delta.Tick(rng.Uint32()))
		n := 1 + rng.IntN(12)
		spread := replicationtest.Pick(rng, 1, 9, 1000)
		middle := rng.IntN(2000) - 1000
		var out, in Delays
		stamps, ticks := make([]Stamp, n), make([]delta.Tick, n)
		w := bitbuf.NewWriter(make([]byte, 200))
		for i := range stamps {
			tick += delta.Tick(1 + rng.IntN(2))
			stamps[i], ticks[i] = stampOf(tick, int32(middle+rng.IntN(spread)), precision), tick
			require.Zero(t, stamps[i].Part%(stampParts>>precision))
			require.Less(t, stamps[i].Part, uint8(stampParts))
			require.True(t, out.Fits(tick, &stamps[i]))
			out.Write(&w, tick, &stamps[i])
		}
		require.NoError(t, w.Err())
		r := bitbuf.NewReader(w.Bytes())
		for i := range stamps {
			s, ok := in.Read(&r, ticks[i])
			require.True(t, ok)
			require.Equal(t, stamps[i], s)
		}
		require.NoError(t, r.Finish())
	}
}

func TestStampsThatDoNotFit(t *testing.T) {
	var d Delays
	require.False(t, d.Fits(5, &Stamp{}), "not valid")
	require.False(t, d.Fits(0, &Stamp{Tick: 1 << 26, Precision: stampBits, Valid: true}), "beyond 32 bits of units")
	require.False(t, d.Fits(0, &Stamp{Tick: 1 << 20, Precision: stampBits, Valid: true}))
	first := Stamp{Tick: 100, Part: 32, Precision: 1, Valid: true}
	require.True(t, d.Fits(105, &first))
	d.Push(105, &first)
	require.False(t, d.Fits(106, &Stamp{Tick: 101, Precision: 6, Valid: true}), "another precision")
}

// TestHostileStamps reads random bits: stamps stay within the limit of delays.
func TestHostileStamps(t *testing.T) {
	rng := rand.New(rand.NewPCG(replicationtest.Seed(t), 1))
	read := 0
	for range 20_000 {
		buf := make([]byte, 24)
		for i := range buf {
			buf[i] = byte(rng.Uint32() & rng.Uint32() & uint32(replicationtest.Pick(rng, 255, rng.IntN(256))))
		}
		r := bitbuf.NewReader(buf)
		var d Delays
		for tick := delta.Tick(0); ; tick++ {
			s, ok := d.Read(&r, tick)
			if !ok {
				break
			}
			delay := s.delay(tick)
			require.True(t, delay < maxDelay && delay > -maxDelay)
			require.LessOrEqual(t, s.Precision, uint8(stampBits))
			read++
		}
	}
	require.Greater(t, read, 10_000)
}

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

// FuzzStamps reads any bits as the stamps of successive inputs, after a reference of others or none. What is read is
// within the limits, fits, and is written as the same bits again: each stamp has one code.
func FuzzStamps(f *testing.F) {
	f.Add([]byte{}, uint32(0), uint8(0), uint8(0))
	f.Add([]byte{0xff, 0x7f, 0, 0, 0x12, 0x34}, ^uint32(2), uint8(3), uint8(0))
	f.Add([]byte{0, 0, 0, 0, 0, 0, 1, 0xff}, uint32(1)<<31-1, uint8(6), uint8(200))
	f.Fuzz(func(t *testing.T, bits []byte, first uint32, precision, reference uint8) {
		bits = bits[:min(len(bits), 256)] // more than a packet's stamps may take
		var in, out Delays
		for i := range int32(reference % 40) { // delays of a steady play-out, and a jump
			delay := int32(reference)<<(i%16) - i
			in.push(delay, precision%(stampBits+1))
			out.push(delay, precision%(stampBits+1))
		}
		r := bitbuf.NewReader(bits)
		w := bitbuf.NewWriter(make([]byte, len(bits)+8))
		tick, end := delta.Tick(first), 0
		for {
			tick++
			s, ok := in.Read(&r, tick)
			if !ok {
				break
			}
			require.Greater(t, r.Pos(), end, "every stamp takes bits, so there is no endless list of them")
			end = r.Pos()
			delay := s.delay(tick)
			require.True(t, delay < maxDelay && delay > -maxDelay)
			require.LessOrEqual(t, s.Precision, uint8(stampBits))
			require.Less(t, s.Part, uint8(stampParts))
			require.Zero(t, s.Part%(stampParts>>s.Precision))
			require.True(t, s.Valid)
			require.True(t, out.Fits(tick, &s))
			out.Write(&w, tick, &s)
			require.Equal(t, in, out)
			require.Equal(t, end, w.Len())
		}
		require.NoError(t, w.Err())
		written := w.Bytes()
		if rest := end % 8; rest > 0 {
			written[end/8] ^= (written[end/8] ^ bits[end/8]) >> rest << rest // bits that belong to no stamp
		}
		require.Equal(t, bits[:len(written)], written)
	})
}

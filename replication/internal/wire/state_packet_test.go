package wire

import (
	"math/rand/v2"
	"testing"

	"github.com/arche-replicate/arche-replicate/replication/internal/replicationtest"
	"github.com/stretchr/testify/require"
)

// TestShortHeadersAreCompleted whatever arrived since the packet that the server knows of, in whatever
// order, across the wrap of sequences and ticks; and a packet that came so late that its sequence is
// completed wrongly has another checksum.
func TestShortHeadersAreCompleted(t *testing.T) {
	rng := rand.New(rand.NewPCG(replicationtest.Seed(t), 4))
	forms := map[HeaderForm]int{}
	late := 0
	for range 300 {
		interval := uint32(3)
		key := SessionKey(1, rng.Uint64(), false, rng.IntN(4) == 0)
		first := ^uint32(0) - uint32(rng.IntN(600))
		w := NewReceiveWindow(first)
		type sent struct {
			packet []byte
			h      StateHeader
		}
		var way []sent
		sequence, tick, known, steady, changed := first, ^uint32(0)-uint32(rng.IntN(600)), first, first, first
		knownTick, rarely := tick, 1+rng.IntN(150)
		w.Add(&StateHeader{Sequence: first, Tick: tick, Interval: uint8(interval)}, true)
		for range 600 {
			before := tick
			if rng.IntN(200) == 0 {
				interval = 1 + uint32(rng.IntN(MaxInterval))
				changed, steady = sequence+1, sequence+1
			}
			if tick += interval; rng.IntN(30) == 0 {
				tick += uint32(rng.IntN(8)) - min(interval, 3)
			}
			if sequence++; tick != before+interval {
				steady = sequence
			}
			h := StateHeader{Sequence: sequence, Tick: tick, Interval: uint8(interval), Wide: key.Off}
			switch {
			case sequence-known > ShortReach, int32(known-changed) < 0:
			case int32(known-steady) >= 0:
				h.Form = HeaderImplied
			case tick-knownTick <= ShortTicks:
				h.Form = HeaderShort
			}
			h.Complete = h.Form != HeaderLong
			forms[h.Form]++
			p := make([]byte, key.Size()+h.Size()+1)
			h.Put(p[key.Size():])
			key.Write(p, h.Sequence, h.Tick)
			way = append(way, sent{p, h})
			for len(way) > 40 { // they arrive in any order, some very late, some never
				i := rng.IntN(min(len(way), 1+rng.IntN(40)))
				if rng.IntN(4) > 0 {
					i = len(way) - 1 - rng.IntN(5)
				}
				f := way[i]
				way = append(way[:i], way[i+1:]...)
				if rng.IntN(10) == 0 {
					continue
				}
				got, _, _, err := w.ParseHeader(key.Body(f.packet), key.Off)
				if tooLate := int32(w.Newest-f.h.Sequence) > 128; tooLate && f.h.Form != HeaderLong && !key.Off {
					late++
					require.True(t, err != nil || !key.Matches(f.packet, got.Sequence, got.Tick))
					continue
				}
				if int32(w.Newest-f.h.Sequence) > WindowSize-ShortReach-1 {
					continue // without checksums: it is refused, or stale
				}
				require.NoError(t, err)
				require.Equal(t, f.h, got)
				require.True(t, key.Matches(f.packet, got.Sequence, got.Tick))
				if !w.Fresh(got.Sequence) {
					continue
				}
				w.Add(&got, true)
				if rng.IntN(rarely) == 0 && int32(got.Sequence-known) > 0 { // an ack comes back
					known, knownTick = got.Sequence, got.Tick
				}
			}
		}
	}
	require.Greater(t, late, 1000)
	require.Greater(t, min(forms[HeaderLong], forms[HeaderShort], forms[HeaderImplied]), 1000, forms)
}

// TestShortHeadersNeedAReference: nothing completes the header of a packet if none of those before it arrived.
func TestShortHeadersNeedAReference(t *testing.T) {
	w := NewReceiveWindow(1)
	for _, form := range []HeaderForm{HeaderShort, HeaderImplied} {
		h := StateHeader{Sequence: 5, Tick: 9, Form: form, Complete: true}
		b := make([]byte, h.Size())
		h.Put(b)
		_, _, _, err := w.ParseHeader(b, false)
		require.ErrorIs(t, err, ErrChecksum)
		h.Wide = true
		b = make([]byte, h.Size())
		h.Put(b)
		_, _, _, err = w.ParseHeader(b, true)
		require.ErrorIs(t, err, ErrStale)
		for n := range b {
			_, _, _, err = w.ParseHeader(b[:max(n, 1)], true)
			require.ErrorIs(t, err, ErrMalformed)
		}
	}
}

// TestKeysDifferNearby: two packets whose sequences and ticks differ by 31,000 or less never have the same
// key. The pairs of differences that have no effect form a lattice; its shortest vector, found by
// Gauss's reduction, is longer than that in any direction.
func TestKeysDifferNearby(t *testing.T) {
	inverse := uint32(1) // of tickFactor, by Newton's iteration
	for range 5 {
		inverse *= 2 - tickFactor*inverse
	}
	require.EqualValues(t, 1, inverse*tickFactor)
	factor := uint32(sequenceFactor)
	y := -factor * inverse
	u, v := [2]int64{1, int64(y)}, [2]int64{0, 1 << 32}
	norm := func(a [2]int64) float64 { return float64(a[0])*float64(a[0]) + float64(a[1])*float64(a[1]) }
	for {
		if norm(u) > norm(v) {
			u, v = v, u
		}
		dot := float64(u[0])*float64(v[0]) + float64(u[1])*float64(v[1])
		n := int64(dot/norm(u) + 0.5)
		if dot < 0 {
			n = -int64(-dot/norm(u) + 0.5)
		}
		if n == 0 {
			break
		}
		v[0], v[1] = v[0]-n*u[0], v[1]-n*u[1]
	}
	require.Zero(t, uint32(u[0])*factor+uint32(u[1])*tickFactor)
	require.Greater(t, norm(u), 2*31_000.0*31_000)
}

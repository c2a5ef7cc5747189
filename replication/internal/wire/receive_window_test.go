package wire

import (
	"math/rand/v2"
	"testing"

	"github.com/arche-replicate/arche-replicate/replication/internal/replicationtest"
	"github.com/stretchr/testify/require"
)

// TestNothingBeforeTheFirstPacketIsFresh: a window begins with the first packet of its session.
func TestNothingBeforeTheFirstPacketIsFresh(t *testing.T) {
	for _, first := range []uint32{0, 5, 1 << 31, 1<<32 - 1} {
		w := NewReceiveWindow(first)
		before := []uint32{first - 1, first - 2, first - 63, first - 1000, first - 1025, first - 1<<15, first - 1<<31 + 10}
		for _, s := range before {
			require.False(t, w.Fresh(s))
		}
		require.Zero(t, w.History(first))
		w.Add(&StateHeader{Sequence: first + 2}, true)
		for _, s := range before {
			require.False(t, w.Fresh(s), "%d of %d", s, first)
		}
		require.True(t, w.Fresh(first))
		require.True(t, w.Fresh(first+1))
		require.False(t, w.Fresh(first+2))
		require.True(t, w.Fresh(first+3))
		require.Equal(t, uint32(1), w.History(first+2))
	}
}

// TestReceiveWindowMatchesTheNaiveList, through losses, reordering and jumps past the window.
func TestReceiveWindowMatchesTheNaiveList(t *testing.T) {
	rng := rand.New(rand.NewPCG(replicationtest.Seed(t), 9))
	for _, first := range []uint32{0, 1<<31 - 3000, 1<<32 - 3000} { // sequences wrap
		w := NewReceiveWindow(first)
		newest := int64(first) - 1
		acked := map[int64]bool{} // by sequence that arrived
		for range 6000 {
			sequence := newest + 1 + int64(rng.IntN(3)) - int64(rng.IntN(1+rng.IntN(30)))
			switch rng.IntN(100) {
			case 0:
				sequence = newest + int64(rng.IntN(2*WindowSize))
			case 1, 2:
				sequence = newest - int64(rng.IntN(2*WindowSize))
			}
			_, arrived := acked[sequence]
			fresh := sequence >= int64(first) && sequence > newest-WindowSize && !arrived
			require.Equal(t, fresh, w.Fresh(uint32(sequence)), "%d, the newest is %d", sequence, newest)
			if fresh {
				ack := rng.IntN(4) > 0
				w.Add(&StateHeader{Sequence: uint32(sequence)}, ack)
				acked[sequence] = ack
				newest = max(newest, sequence)
			}
			require.Equal(t, uint32(newest), w.Newest)
			from := newest - int64(rng.IntN(WindowSize-31))
			history := uint32(0)
			for i := range int64(32) {
				if acked[from-i] && from-i > newest-WindowSize {
					history |= 1 << i
				}
			}
			require.Equal(t, history, w.History(uint32(from)))
			at := newest + 1 - int64(rng.IntN(WindowSize-ShortReach))
			before := at - 1
			for !acked[before] && before > at-ShortReach {
				before--
			}
			reference, ok := w.reference(uint32(at))
			require.Equal(t, acked[before], ok)
			if ok {
				require.Equal(t, uint32(before), reference)
			}
		}
	}
}

// TestOneWrongSequenceLeavesGenuineOnesFresh, whatever it is, at first and later, twice and with genuine packets
// between; a second one near it is believed.
func TestOneWrongSequenceLeavesGenuineOnesFresh(t *testing.T) {
	rng := rand.New(rand.NewPCG(replicationtest.Seed(t), 10))
	add := func(w *ReceiveWindow, sequence uint32) bool {
		ok := w.Fresh(sequence) && w.Near(sequence)
		if ok {
			w.Add(&StateHeader{Sequence: sequence}, true)
		}
		return ok
	}
	for _, first := range []uint32{0, 1<<31 - 10, 1<<32 - 10} {
		for sent := range uint32(30) {
			for n := range 100 {
				w := NewReceiveWindow(first)
				next := first
				for ; next != first+sent; next++ {
					require.True(t, add(&w, next))
				}
				wrong := next - 1 + WindowSize + uint32(n)
				if n > 2 {
					wrong = rng.Uint32()
				}
				add(&w, wrong)
				require.False(t, add(&w, wrong), "the same again")
				require.True(t, add(&w, next) || wrong == next, "%d after %d of %d", wrong, sent, first)
			}
		}
		w := NewReceiveWindow(first)
		far := first + WindowSize + 500
		require.False(t, add(&w, far))
		require.False(t, add(&w, far+WindowSize), "not near")
		require.True(t, add(&w, far+1), "overtaken")
		require.True(t, add(&w, far+WindowSize))
		require.True(t, add(&w, far+2), "late")
		far += 1 << 20
		require.False(t, add(&w, far))
		require.True(t, add(&w, w.Newest+1))
		require.False(t, add(&w, far+1), "a genuine one came between")
		require.True(t, add(&w, far+2))
	}
}

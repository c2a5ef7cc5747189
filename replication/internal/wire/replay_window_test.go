package wire

import (
	"math/rand/v2"
	"testing"

	"github.com/arche-replicate/arche-replicate/replication/internal/replicationtest"
	"github.com/stretchr/testify/require"
)

// TestReplayWindowMatchesTheNaiveList: a packet is fresh if it is newer than all others, or neither
// arrived before nor is older than the window.
func TestReplayWindowMatchesTheNaiveList(t *testing.T) {
	rng := rand.New(rand.NewPCG(replicationtest.Seed(t), 3))
	for _, first := range []uint32{0, 1<<31 - 500, 1<<32 - 500} { // times wrap
		var w ReplayWindow
		seen := map[[2]uint32]bool{}
		newest := first
		for i := range 4000 {
			time := newest + uint32(rng.IntN(4)) - uint32(rng.IntN(1+rng.IntN(2*seenTicks)))
			if rng.IntN(100) == 0 {
				time = newest + uint32(rng.IntN(3*seenTicks))
			}
			index := uint32(rng.IntN(16))
			ahead := int32(time - newest)
			want := i == 0 || ahead > 0 || ahead > -seenTicks && !seen[[2]uint32{time, index}]
			require.Equal(t, want, w.Fresh(time, uint(index)), "packet %d of time %d, the newest is of %d", index, time, newest)
			if !want {
				continue
			}
			if i == 0 || ahead > 0 {
				newest = time
			}
			seen[[2]uint32{time, index}] = true
			w.Add(time, uint(index))
			require.False(t, w.Fresh(time, uint(index)))
			require.Equal(t, newest, w.Newest)
		}
	}
}

// TestFarTimesAreConfirmedByTheNextOne: packets from before a pause come singly, between others. They do not confirm each
// other.
func TestFarTimesAreConfirmedByTheNextOne(t *testing.T) {
	var w ReplayWindow
	w.Add(100, 0)
	believes := func(time uint32) bool {
		return w.Believes(&MessageHeader{Time: time}, w.Newest, true, false)
	}
	require.False(t, believes(5000))
	require.True(t, believes(101))
	w.Add(101, 0)
	require.False(t, believes(5001), "genuine packets came since")
	require.True(t, believes(5002))
}

package ackstate

import (
	"math/rand/v2"
	"testing"

	"github.com/arche-replicate/arche-replicate/replication/internal/replicationtest"
	"github.com/stretchr/testify/require"
)

// TestAckHistory compares an ackHistory with a list of all that was acknowledged: it reports everything at least once,
// and again only what is 64 packets old. The acks come in any order, and their sequences wrap around.
func TestAckHistory(t *testing.T) {
	rng := rand.New(rand.NewPCG(replicationtest.Seed(t), 7))
	for range 200 {
		first := ^uint32(0) - rng.Uint32N(300)
		h := ackHistory{newest: first - 1}
		reported := map[uint32]bool{}
		newest := first
		for range 400 {
			newest += rng.Uint32N(12)
			if rng.IntN(30) == 0 {
				newest += rng.Uint32N(200)
			}
			sequence, word := newest-rng.Uint32N(100)*rng.Uint32N(2), rng.Uint32()
			latest := h.newest
			if int32(sequence-latest) > 0 {
				latest = sequence
			}
			fresh := h.add(sequence, word)
			require.Zero(t, fresh&^word, "of what is not acknowledged")
			for i := range uint32(32) {
				packet := sequence - i
				if word>>i&1 == 0 {
					continue
				}
				isNew := fresh>>i&1 != 0
				require.False(t, !isNew && !reported[packet], "packet %d is never reported", packet)
				require.False(t, isNew && reported[packet] && latest-packet < 64, "packet %d is reported again", packet)
				reported[packet] = true
			}
		}
	}
}

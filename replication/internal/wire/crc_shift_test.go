package wire

import (
	"hash/crc32"
	"math/rand/v2"
	"testing"

	"github.com/arche-replicate/arche-replicate/replication/internal/replicationtest"
	"github.com/stretchr/testify/require"
)

// TestChecksumOfASharedEnd checks that the checksums of a packet's beginning and end combine to the
// checksum of the packet.
func TestChecksumOfASharedEnd(t *testing.T) {
	rng := rand.New(rand.NewPCG(replicationtest.Seed(t), 1))
	for _, n := range []int{0, 1, 2, 3, 7, 8, 255, 256, 1183, 4096, 65535} {
		end := make([]byte, n)
		for i := range end {
			end[i] = byte(rng.Uint32())
		}
		var shift CRCShift
		shift.Set(n)
		for range 20 {
			key := rng.Uint32()
			require.Equal(t, crc32.Update(key, Castagnoli, end), crc32.Checksum(end, Castagnoli)^shift.Of(key), "%d bytes", n)
		}
	}
}

package history

import (
	"math/rand/v2"
	"testing"

	"github.com/arche-replicate/arche-replicate/replication/internal/replicationtest"
)

// roundsOf is how often a random test does the same with other values: fewer where time is scarce.
func roundsOf(long, short int) int {
	if testing.Short() {
		return short
	}
	return long
}

func randomOf(t testing.TB) *rand.Rand { return rand.New(rand.NewPCG(replicationtest.Seed(t), 0)) }

func randomBytes(rng *rand.Rand, n int) []byte {
	b := make([]byte, n)
	for i := range b {
		b[i] = byte(rng.Uint32())
	}
	return b
}

// A script hands out the bytes of fuzz input, or of a random test, as choices. At its end it hands out zeros.
type script struct{ rest []byte }

func (s *script) byte() byte {
	if len(s.rest) == 0 {
		return 0
	}
	b := s.rest[0]
	s.rest = s.rest[1:]
	return b
}

// below returns a choice of 0..n-1, n <= 256.
func (s *script) below(n int) int { return int(s.byte()) % n }

// Package replicationtest has helpers for the tests of several packages. Only tests import it.
package replicationtest

import (
	"hash/fnv"
	"os"
	"strconv"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

// Seed returns the seed of a random test. It is derived from the name of the test, so it is the
// same in every run, unless the environment variable REPLICATION_SEED sets it: to a number, or to
// "random". A failed test logs its seed.
func Seed(t testing.TB) uint64 {
	hash := fnv.New64a()
	hash.Write([]byte(t.Name()))
	seed := hash.Sum64()
	switch env := os.Getenv("REPLICATION_SEED"); env {
	case "":
	case "random":
		seed = uint64(time.Now().UnixNano())
	default:
		var err error
		seed, err = strconv.ParseUint(env, 10, 64)
		require.NoError(t, err)
	}
	t.Cleanup(func() {
		if t.Failed() {
			t.Logf("reproduce with REPLICATION_SEED=%d", seed)
		}
	})
	return seed
}

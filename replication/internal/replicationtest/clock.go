package replicationtest

import (
	"testing"
	"time"

	"github.com/arche-replicate/arche-replicate/delta"
)

// Until plays rounds by the clock until done, for 30 seconds at most: then it fails, after describe has logged.
func Until(t testing.TB, done func() bool, round, describe func()) {
	t.Helper()
	for end := time.Now().Add(30 * time.Second); time.Now().Before(end); time.Sleep(2 * time.Millisecond) {
		if round(); done() {
			return
		}
	}
	describe()
	t.Fatal("it did not happen in 30 seconds")
}

// Advances returns a function that reports whether a client is connected and has seen so many ticks more, from now on
// or from when it is connected first.
func Advances(tick func() delta.Tick, connected func() bool, ticks int32) func() bool {
	from, met := tick(), connected()
	return func() bool {
		if !met {
			from, met = tick(), connected()
		}
		return met && connected() && int32(tick()-from) >= ticks
	}
}

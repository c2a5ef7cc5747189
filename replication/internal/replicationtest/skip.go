package replicationtest

import "testing"

// OneGoroutine skips a test under the race detector, which makes it ten times slower and finds
// nothing in a single goroutine. It is for slow tests only. Tests that use workers or goroutines
// must not call it.
func OneGoroutine(t testing.TB) {
	t.Helper()
	if RaceDetector {
		t.Skip("one goroutine does it all")
	}
}

// SkipAllocations skips a test where allocation counts mean nothing.
func SkipAllocations(t testing.TB) {
	t.Helper()
	if RaceDetector {
		t.Skip("the race detector allocates")
	}
}

// TicksOf returns the length of a random test: short where time is scarce.
func TicksOf(long, short int) int {
	if testing.Short() || RaceDetector {
		return short
	}
	return long
}

//go:build race

package replicationtest

// RaceDetector reports whether the race detector is on.
const RaceDetector = true

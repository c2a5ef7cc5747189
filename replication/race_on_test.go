//go:build race

package replication

const raceDetector = true

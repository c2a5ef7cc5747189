//go:build !race

package replication

const raceDetector = false

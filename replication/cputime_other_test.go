//go:build !unix

package replication

import "time"

var processStart = time.Now()

// cpuTime is the wall-clock time, for systems without a portable way to get the CPU time of a
// process.
func cpuTime() time.Duration { return time.Since(processStart) }

//go:build !unix

package replication

import "time"

var processStart = time.Now()

// cpuTime stands in for the CPU time of this process where there is no portable way to ask.
func cpuTime() time.Duration { return time.Since(processStart) }

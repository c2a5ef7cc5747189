//go:build unix

package replication

import (
	"syscall"
	"time"
)

// cpuTime returns the CPU time that this process has used. What else runs on the machine
// changes it far less than it changes the time on the clock.
func cpuTime() time.Duration {
	var u syscall.Rusage
	if syscall.Getrusage(syscall.RUSAGE_SELF, &u) != nil {
		return 0
	}
	return time.Duration(u.Utime.Nano() + u.Stime.Nano())
}

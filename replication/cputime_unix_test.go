//go:build unix

package replication

import (
	"syscall"
	"time"
)

// cpuTime returns the CPU time that this process has used. Other processes on the machine affect it
// far less than they affect wall-clock time.
func cpuTime() time.Duration {
	var u syscall.Rusage
	if syscall.Getrusage(syscall.RUSAGE_SELF, &u) != nil {
		return 0
	}
	return time.Duration(u.Utime.Nano() + u.Stime.Nano())
}

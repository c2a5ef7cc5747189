package replicationtest

import (
	"os"
	"runtime"
	"strings"
	"testing"
	"time"
)

// Resources are the goroutines of the process and, on Linux, its sockets.
type Resources struct{ goroutines, sockets int }

// Held returns the resources of the moment.
func Held() Resources { return Resources{runtime.NumGoroutine(), sockets()} }

// RequireReleased fails if there are more than there were, also after ten seconds.
func (r Resources) RequireReleased(t testing.TB) {
	t.Helper()
	for range 500 {
		if now := Held(); now.goroutines <= r.goroutines && now.sockets <= r.sockets {
			return
		}
		time.Sleep(20 * time.Millisecond)
	}
	stacks := make([]byte, 1<<16)
	t.Fatalf("%d sockets instead of %d, %s", sockets(), r.sockets, stacks[:runtime.Stack(stacks, true)])
}

func sockets() (n int) {
	open, _ := os.ReadDir("/proc/self/fd") // nothing elsewhere than on Linux
	for _, f := range open {
		if to, _ := os.Readlink("/proc/self/fd/" + f.Name()); strings.HasPrefix(to, "socket:") {
			n++
		}
	}
	return n
}

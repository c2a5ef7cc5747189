// Package soak plays random games with random schemas over bad links, and compares what clients show with what is to be
// shown by the documented rules alone. It knows nothing of the library but its public functions.
package soak

import (
	"flag"
	"fmt"
	"os"
	"testing"
	"time"
)

var (
	seedFlag    = flag.Uint64("soak.seed", 0, "seed of the first episode; the next ones have the next numbers; 0: by the clock")
	packetsFlag = flag.Uint64("soak.packets", 0, "how many packets to play with; 0: as many as some seconds take")
)

// TestSoak plays episodes until there were enough packets. By hand:
//
//	go test -v -timeout 0 -run TestSoak ./replication/internal/soak -soak.packets=1000000
func TestSoak(t *testing.T) {
	seed, packets := *seedFlag, *packetsFlag
	if seed == 0 {
		seed = uint64(time.Now().UnixNano()) % 1e9
	}
	switch {
	case packets > 0:
	case testing.Short():
		packets = 5000
	default:
		packets = 20000
	}
	t.Logf("-soak.seed=%d", seed)
	var done, checks, episodes uint64
	begun, told := time.Now(), time.Now()
	for ; done < packets; episodes++ {
		ep := newEpisode(t, seed+episodes)
		ep.run()
		done, checks = done+ep.packets, checks+ep.checks
		if testing.Verbose() && time.Since(told) > 5*time.Second {
			told = time.Now()
			fmt.Fprintf(os.Stderr, "%d episodes, %d packets, %d checks, %.0f s\n", episodes+1, done, checks, time.Since(begun).Seconds())
		}
	}
	t.Logf("seeds %d to %d: %d packets, %d checks, no failure, %.0f s", seed, seed+episodes-1, done, checks, time.Since(begun).Seconds())
}

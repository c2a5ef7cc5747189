// Package soak plays random games with random schemas over bad links, and compares what clients
// show with what the documented rules allow. It uses only the library's public functions.
package soak

import (
	"flag"
	"fmt"
	"os"
	"testing"
	"time"
)

var (
	seedFlag    = flag.Uint64("soak.seed", 1, "seed of the first episode; the next ones have the next numbers; 0: by the clock")
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
	var met tally
	begun, reported := time.Now(), time.Now()
	for ; done < packets; episodes++ {
		ep := newEpisode(t, seed+episodes)
		ep.run()
		done, checks = done+ep.packets, checks+ep.checks
		met.add(ep)
		if testing.Verbose() && time.Since(reported) > 5*time.Second {
			reported = time.Now()
			fmt.Fprintf(os.Stderr, "%d episodes, %d packets, %d checks, %.0f s\n", episodes+1, done, checks, time.Since(begun).Seconds())
		}
	}
	t.Logf("seeds %d to %d: %d packets, %d checks, no failure, %.0f s", seed, seed+episodes-1, done, checks, time.Since(begun).Seconds())
	t.Logf("clients %d, of them with Compact %d; sessions %d; adopted %d; messages %d; inputs %d; groups sent again %d, split %d; in parts %d; lost %d; entities compared by hash %d",
		met.clients, met.compact, met.sessions, met.adopted, met.messages, met.inputs, met.resends, met.split, met.parts, met.lost, met.hashed)
}

// A tally counts what happened in the episodes: where a count is 0, nothing was tested.
type tally struct {
	clients, compact                                                         int
	sessions, adopted, messages, inputs, resends, split, parts, lost, hashed uint64
}

func (m *tally) add(ep *episode) {
	for _, c := range ep.conns {
		m.clients++
		if c.client.Stats().Compact {
			m.compact++
		}
		s, p := c.client.Stats(), c.peer.Stats()
		m.sessions += s.Sessions
		m.adopted += s.Adopted
		m.messages += s.MessagesReceived + p.MessagesReceived
		m.hashed += s.HashesCompared
		m.inputs += p.Inputs
		m.resends += p.GroupResends
		m.split += p.SplitGroups
		m.parts += p.Parts
		m.lost += p.Lost
	}
}

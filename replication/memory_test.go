package replication

import (
	"runtime"
	"testing"
	"unsafe"

	"github.com/stretchr/testify/require"
)

const (
	// maxTableBytes is what is kept of every entity for every peer.
	maxTableBytes = 16
	// maxPeerBytes is that and what lists the packets that are on their way, which stays
	// as large as it was in the burst in which the peer joined.
	maxPeerBytes = 40
)

// TestPeersTakeLittleMemory measures what peers of a lively world take for every entity:
// the heap with many of them, less the heap with a few.
func TestPeersTakeLittleMemory(t *testing.T) {
	if raceDetector {
		t.Skip("the race detector takes memory of its own")
	}
	entities, peers, ticks := 5000, 8, 135
	if testing.Short() {
		entities, peers, ticks = 2000, 5, 135
	}
	for _, c := range []struct {
		name   string
		loss   float64
		silent bool // one peer is, from some tick on
		budget int
	}{
		{name: "no loss"},
		{name: "5 percent loss", loss: 0.05},
		{name: "one of them silent", silent: true},
		{name: "on a budget", budget: 64_000},
	} {
		t.Run(c.name, func(t *testing.T) {
			var tables float64
			heap := func(n int) int64 {
				r := newSharedRig(t, scaleGame(entities), n, c.loss, 1)
				for _, f := range r.fakes {
					f.peer.SetBudget(c.budget)
				}
				for tick := range ticks {
					if c.silent && tick == 40 {
						f := r.fakes[n-1]
						f.loss = 1
					}
					r.tick()
				}
				p := r.fakes[0].peer
				tables = float64(len(p.acks.chunks)*int(unsafe.Sizeof(ackChunk{}))+8*(cap(p.due)+cap(p.waiting)+cap(p.met))+2*cap(p.waits)) / float64(entities)
				var before runtime.MemStats
				runtime.GC()
				runtime.GC() // what pools keep lives on for one
				runtime.ReadMemStats(&before)
				runtime.KeepAlive(r)
				return int64(before.HeapAlloc)
			}
			one, many := heap(5), heap(5+peers) // of all delays there are
			each := float64(many-one) / float64(entities*peers)
			t.Logf("%.1f bytes for every peer and entity, of these %.1f in tables", each, tables)
			require.Less(t, each, float64(maxPeerBytes))
			require.LessOrEqual(t, tables, float64(maxTableBytes))
			require.Greater(t, tables, 1.0)
		})
	}
}

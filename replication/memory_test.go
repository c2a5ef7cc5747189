package replication

import (
	"runtime"
	"testing"
	"unsafe"

	"github.com/arche-replicate/arche-replicate/replication/internal/ackstate"
	"github.com/stretchr/testify/require"
)

// maxTableBytes bounds the tables per entity and peer: less than 10, and 2 with a budget.
const maxTableBytes = 12

// TestPeersDoNotShareCacheSets: the allocator rounds a peer of more than 3,448 bytes up to 4,096. The
// same field of all peers then falls into the same few sets of the processor's cache, and a tick
// with many idle peers takes a sixth longer.
func TestPeersDoNotShareCacheSets(t *testing.T) {
	const class, header = 3456, 8 // of objects with pointers
	require.LessOrEqual(t, unsafe.Sizeof(Peer{}), uintptr(class-header),
		"move what is rarely used behind a pointer, as session does with refusals")
}

// TestPeersTakeLittleMemory measures the memory per peer and entity of a lively world: the heap
// with many peers, less the heap with a few. That includes the tables, the log of packets in
// flight, and the packets of a tick.
//
// It excludes the memory of encoded entities, which peers share: it grows with the number of
// baselines in use rather than with peers, and has a limit of its own.
func TestPeersTakeLittleMemory(t *testing.T) {
	if raceDetector {
		t.Skip("the race detector takes memory of its own")
	}
	for _, c := range []struct {
		name     string
		entities int
		loss     float64
		silent   bool // peers become silent
		budget   int
		limit    float64 // bytes for a peer and entity
	}{
		{name: "no loss", entities: 10_000, limit: 16},
		// Packets stay unresolved for longer, for a time that varies.
		{name: "5 percent loss", entities: 5000, loss: 0.05, limit: 19},
		// All moving entities are sent again and again until the peers count as silent. The amount
		// in flight is bounded by the timeout, which is at most clock.MaxTimeout, and by
		// ackstate.MaxInFlight.
		{name: "silent", entities: 5000, silent: true, limit: 27},
		{name: "on a budget", entities: 10_000, budget: 64_000, limit: 16},
	} {
		t.Run(c.name, func(t *testing.T) {
			const few, more, ticks = 5, 8, 4*ackstate.ResizeTicks + 7 // the few have all delays that occur
			if testing.Short() {
				c.entities /= 2
				c.limit += 2 // a peer's fixed size
			}
			var tables float64
			heap := func(n int) (peers, encoding int64) {
				r := newSharedRig(t, scaleGame(c.entities), n, c.loss, 1, neverSilent)
				for _, f := range r.fakes {
					f.peer.SetBudget(c.budget)
				}
				for tick := range ticks {
					if c.silent && tick == 40 {
						for _, f := range r.fakes[few:] {
							f.loss = 1
						}
					}
					r.tick()
				}
				p := r.fakes[0].peer
				tables = float64(sizeOfAcks(&p.acked.Acks)+8*(cap(p.acked.Dirty)+cap(p.acked.DirtyBlocks)+cap(p.out.Selector.Urgency.Waiting)+cap(p.out.Selector.Urgency.Planes))) / float64(c.entities)
				with := heapInUse()
				clear(r.server.sender.workers.List)
				without := heapInUse()
				runtime.KeepAlive(r)
				return without - int64(n)*int64(unsafe.Sizeof(fakeClient{})), with - without
			}
			some, _ := heap(few)
			all, encoding := heap(few + more)
			each := float64(all-some) / float64(c.entities*more)
			shared := float64(encoding) / float64(c.entities)
			t.Logf("%.2f bytes for every peer and entity, of these %.1f in tables; %.0f for every entity to encode for all", each, tables, shared)
			require.LessOrEqual(t, each, c.limit)
			require.LessOrEqual(t, tables, float64(maxTableBytes))
			require.Greater(t, tables, 1.0)
			require.Less(t, shared, 1000.0)
			require.Greater(t, shared, 1.0)
		})
	}
}

// heapInUse returns the bytes of memory in use.
func heapInUse() int64 {
	var m runtime.MemStats
	runtime.GC()
	runtime.GC() // values in pools survive one collection
	runtime.ReadMemStats(&m)
	return int64(m.HeapAlloc)
}

// sizeOfAcks returns the size of a table in bytes.
func sizeOfAcks(t *ackstate.AckTable) int {
	words := cap(t.None) + cap(t.Ended) + cap(t.Shown) + cap(t.Unknown)
	for _, row := range t.Missing {
		words += cap(row)
	}
	return 8*words + 4*cap(t.Since)
}

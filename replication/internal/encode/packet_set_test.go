package encode

import (
	"math/bits"
	"math/rand/v2"
	"testing"

	"github.com/arche-replicate/arche-replicate/bitbuf"
	"github.com/arche-replicate/arche-replicate/replication/internal/replicationtest"
	"github.com/arche-replicate/arche-replicate/replication/internal/snapshot"
	"github.com/stretchr/testify/require"
)

// TestEntriesOfSlotsAreCopied: Append writes the entries of any slots of a block, in their order, and Size returns
// how many bits and how much work they are, beside entries that are kept one by one.
func TestEntriesOfSlotsAreCopied(t *testing.T) {
	rng := rand.New(rand.NewPCG(replicationtest.Seed(t), 1))
	type entry struct {
		bits uint64
		n    uint
		work int
	}
	for range 300 {
		set := PacketSet{Slots: make([]uint64, 3), places: make([]int32, 3)}
		all := map[int]entry{}
		w := bitbuf.NewWriter(make([]byte, 4096))
		w.WriteBits(0, uint(rng.IntN(64))) // what precedes the contents
		contents := w.Len()
		for b := range set.Slots {
			set.places[b] = int32(b)
			block, sum := sharedBlock{first: int32(len(set.entries)), begin: int32(w.Len() - contents)}, 0
			set.Slots[b] = rng.Uint64()&rng.Uint64() | 1<<rng.IntN(64)
			for i := range 64 {
				if set.Slots[b]>>i&1 == 0 {
					continue
				}
				e := entry{n: uint(rng.IntN(65)), work: rng.IntN(100)}
				e.bits = rng.Uint64() & (1<<e.n - 1)
				all[b<<6+i] = e
				w.WriteBits(e.bits, e.n)
				sum += e.work
				set.entries = append(set.entries, sharedEntry{int32(w.Len() - contents), int32(sum)})
			}
			block.end = int32(len(set.entries))
			set.blocks = append(set.blocks, block)
		}
		set.packets = []SharedPacket{{Body: w.Bytes(), contents: contents}}
		require.NoError(t, w.Err())
		for b, slots := range set.Slots {
			if rng.IntN(3) > 0 {
				slots &= rng.Uint64() | 1<<bits.TrailingZeros64(slots)
			}
			got, want := bitbuf.NewWriter(make([]byte, 1024)), bitbuf.NewWriter(make([]byte, 1024))
			begin := uint(rng.IntN(64))
			got.WriteBits(0, begin)
			want.WriteBits(0, begin)
			work := 0
			for i := range 64 {
				if e := all[b<<6+i]; slots>>i&1 != 0 {
					want.WriteBits(e.bits, e.n)
					work += e.work
				}
			}
			x := set.In(b)
			size, needs := x.Size(slots)
			require.Equal(t, want.Len()-int(begin), size)
			require.Equal(t, work, needs)
			x.Append(&got, slots)
			require.Equal(t, want.Len(), got.Len())
			require.Equal(t, want.Bytes(), got.Bytes())
		}
	}
}

// TestPartsDoNotLimitEachOther: how many packets a part may have does not depend on those of other parts, which other
// workers may have.
func TestPartsDoNotLimitEachOther(t *testing.T) {
	var set PacketSet
	set.parts.begin(&snapshot.Period{}, &partition{starts: []int32{5, 9}})
	set.parts.at = 1
	set.packets = make([]SharedPacket, 1000)
	set.parts.list[0].add(999)
	require.True(t, set.mayOpen(873))
	for range 873/3 + 1 {
		require.True(t, set.mayOpen(873))
		set.parts.list[1].add(len(set.packets))
		set.packets = append(set.packets, SharedPacket{})
	}
	require.False(t, set.mayOpen(873))
	require.True(t, set.mayOpen(873*4))
}

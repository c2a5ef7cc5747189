package encode

import (
	"math"
	"math/rand/v2"
	"slices"
	"testing"

	"github.com/arche-replicate/arche-replicate/delta"
	"github.com/arche-replicate/arche-replicate/replication/internal/replicationtest"
	"github.com/arche-replicate/arche-replicate/replication/internal/snapshot"
	"github.com/stretchr/testify/require"
)

// TestPartsFillPackets: the parts have all blocks, none takes more than a packet unless a block does, and only the
// last one is less full than a part may be.
func TestPartsFillPackets(t *testing.T) {
	rng := rand.New(rand.NewPCG(replicationtest.Seed(t), 1))
	for range 300 {
		p := partition{sizes: make([]int32, 1+rng.IntN(400))}
		const room = 9600
		for range 4 {
			for b := range p.sizes {
				if p.sizes[b] = int32(rng.IntN(1200)); rng.IntN(20) == 0 {
					p.sizes[b] = room + int32(rng.IntN(room))
				}
			}
			p.divide(room)
			require.True(t, slices.IsSorted(p.starts))
			end := 0
			for part := range p.len() {
				from, to := p.bounds(part, len(p.sizes))
				require.Equal(t, end, from)
				require.Less(t, from, to)
				r := p.slots(part)
				require.Equal(t, from<<6, r.From)
				if end = to; part < p.len()-1 {
					require.Equal(t, to<<6, r.To)
				} else {
					require.Equal(t, math.MaxInt, r.To)
				}
				size := sum(p.sizes[from:to])
				if to-from > 1 {
					require.LessOrEqual(t, size, int32(room)*stayFull/fullParts)
				}
				if part < p.len()-1 && p.sizes[to] < room/8 {
					require.GreaterOrEqual(t, size, int32(room)*leastFull/fullParts)
				}
			}
			require.Equal(t, len(p.sizes), end)
		}
	}
}

// TestPartsStay: while the sizes of the blocks vary a little, nearly all parts keep their ends.
func TestPartsStay(t *testing.T) {
	rng := rand.New(rand.NewPCG(replicationtest.Seed(t), 1))
	p := partition{sizes: make([]int32, 300)}
	means := make([]int32, len(p.sizes))
	for b := range means {
		means[b] = 400 + int32(rng.IntN(400))
	}
	kept, moved := 0, 0
	for range 200 {
		for b := range p.sizes {
			p.sizes[b] = means[b] + int32(rng.IntN(41)) - 20
		}
		before := slices.Clone(p.starts)
		p.divide(9600)
		for _, b := range before {
			if slices.Contains(p.starts, b) {
				kept++
			} else {
				moved++
			}
		}
	}
	require.Greater(t, kept, 3000)
	require.Less(t, moved, kept/50)
}

// TestPartitionsByPeriodAndAge: peers with another interval or much older baselines have parts of their own.
func TestPartitionsByPeriodAndAge(t *testing.T) {
	const now = delta.Tick(3)
	var p Partitions
	of := func(ticks, age delta.Tick) *partition {
		return p.of(&snapshot.Period{Ticks: ticks}, snapshot.BasePair{Base: now - age}, now)
	}
	require.NotSame(t, of(1, 4), of(2, 4))
	for _, class := range [][2]delta.Tick{{1, 2}, {3, 11}, {12, 31}} {
		require.Same(t, of(snapshot.MaxPeriod, class[0]), of(snapshot.MaxPeriod, class[1]))
	}
	require.NotSame(t, of(1, 2), of(1, 3))
	require.NotSame(t, of(1, 11), of(1, 12))
}

// sum returns the sum of some sizes.
func sum(sizes []int32) (n int32) {
	for _, size := range sizes {
		n += size
	}
	return n
}

package snapshot

import (
	"math/rand/v2"
	"testing"

	"github.com/arche-replicate/arche-replicate/delta"
	"github.com/arche-replicate/arche-replicate/replication/internal/bitset"
	"github.com/arche-replicate/arche-replicate/replication/internal/replicationtest"
	"github.com/arche-replicate/arche-replicate/replication/internal/wire"
	"github.com/mlange-42/arche/ecs"
	"github.com/stretchr/testify/require"
)

// TestComponentsOfBlocks compares what is known of the component sets of a block with a look at each of its slots. A
// refresh finds what no slot has any more.
func TestComponentsOfBlocks(t *testing.T) {
	rng := rand.New(rand.NewPCG(replicationtest.Seed(t), 8))
	var s Snapshot
	slots := &s.Slots
	slots.InitClasses(0, 0)
	now := ^delta.Tick(0) - 200
	random := func() (set wire.ComponentSet) {
		set.Add(rng.IntN(delta.MaxComponents))
		set.Add(rng.IntN(8))
		return set
	}
	exact, changes := 0, 0
	for range 500 {
		now++
		s.Tick = now
		for range rng.IntN(3) {
			set := random()
			slots.setComponents(slots.Add(ecs.Entity{}, now), &set, now)
		}
		if n := slots.Len(); n > 0 && rng.IntN(3) == 0 {
			if slot := rng.IntN(n); slots.Alive.Has(slot) {
				set := random()
				slots.setComponents(slot, &set, now)
			}
		}
		for b, alive := range slots.Alive {
			of := alive & (rng.Uint64() | rng.Uint64())
			for slot := range bitset.Slots(b, alive) {
				if rng.IntN(60) == 0 {
					slots.Remove(slot, now)
					of &^= 1 << (slot & 63)
				}
			}
			refreshed := rng.IntN(20) == 0
			if refreshed {
				s.refreshSlots(b, ^uint64(0)>>(64-min(64, slots.Len()-b*64)))
			}
			at := now - delta.Tick(rng.IntN(30))
			var union wire.ComponentSet
			var after uint64
			for slot := range bitset.Slots(b, slots.Alive[b]) {
				info := &slots.Info[slot]
				union.AddAll(&info.Set)
				if info.SetChanged.After(at) {
					after |= 1 << (slot & 63)
				}
			}
			all, changed := slots.Components(b, of, at)
			require.Equal(t, after&of, changed)
			both := union
			both.AddAll(all)
			require.Equal(t, *all, both, "components are missing")
			if refreshed {
				require.Equal(t, union, *all, "components that no slot has")
				exact++
			}
			changes += int(min(changed, 1))
		}
	}
	require.Greater(t, exact, 50)
	require.Greater(t, changes, 50)
}

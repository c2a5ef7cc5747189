package encode

import (
	"slices"
	"testing"

	"github.com/arche-replicate/arche-replicate/replication/internal/baseline"
	"github.com/arche-replicate/arche-replicate/replication/internal/replicationtest"
	"github.com/stretchr/testify/require"
)

// A poolGame has a pool, the records of a set in each tick, and a log that uses them for some ticks.
type poolGame struct {
	pool    recordPool
	records *baseline.SharedRecords
	used    []*baseline.SharedRecords // in the latest ticks
}

// tick uses the records of a new tick, and those of at most so many ticks.
func (g *poolGame) tick(t *testing.T, ticks int) {
	t.Helper()
	g.records = g.pool.replace(g.records)
	if g.records.InUse() || slices.Contains(g.pool.list, g.records) || len(g.records.List) != 0 {
		t.Fatal("records that are used, or that may be given out again")
	}
	g.records.List = append(g.records.List, baseline.NewRecord(1, 2, baseline.RecordState))
	g.records.Use()
	g.used = append(g.used, g.records)
	for len(g.used) > ticks {
		if len(g.used[0].List) == 0 {
			t.Fatal("what is used was emptied")
		}
		g.used[0].Release()
		g.used = slices.Delete(g.used, 0, 1)
	}
}

// TestRecordPoolUsesAgainWhatIsFree, whatever it has to keep for idle peers, and allocates nothing then.
func TestRecordPoolUsesAgainWhatIsFree(t *testing.T) {
	replicationtest.SkipAllocations(t)
	var g poolGame
	for range 20 { // for peers that stay idle
		g.tick(t, 1)
		g.records.Use()
	}
	g.used = nil
	for range 400 {
		g.tick(t, 30)
	}
	size := len(g.pool.list)
	require.Less(t, size, 20+3*30)
	require.Zero(t, testing.AllocsPerRun(500, func() { g.tick(t, 30) }))
	require.Equal(t, size, len(g.pool.list))
}

// TestRecordPoolShrinks after a burst, and keeps what is used.
func TestRecordPoolShrinks(t *testing.T) {
	var g poolGame
	for range 500 {
		g.tick(t, 400)
	}
	require.Greater(t, len(g.pool.list), 390)
	for range 50 {
		g.tick(t, 5)
	}
	g.pool.shrink()
	require.Less(t, len(g.pool.list), 40)
	for _, r := range g.used[:4] { // the last one is that of the set
		require.Contains(t, g.pool.list, r)
	}
	for range 50 {
		g.tick(t, 5)
	}
	g.pool.shrink()
	require.Less(t, len(g.pool.list), 40)
}

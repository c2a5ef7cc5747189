//go:build !js && !wasip1

// Not built where there are no files.

package replication

import (
	"fmt"
	"os"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"
)

// TestWhatGroupsCost measures the table of docs/groups.md:
//
//	go test -run TestWhatGroupsCost -v ./replication
//
// 400 entities move on a plane, each in every n-th tick; the members of a group have their ticks
// spread as far apart as possible. Acks take 6 ticks. One peer is enough, because its packets do
// not depend on other peers.
func TestWhatGroupsCost(t *testing.T) {
	t.Parallel()
	oneGoroutine(t)
	const entities, warm, measured = 400, 100, 160
	cost := func(every, size int) float64 {
		c := newLoadWorld(t, entities, loadSchema())
		for i := 0; size > 1 && i < entities; i += size {
			g := c.server.NewGroup()
			for _, e := range c.entities[i : i+size] {
				g.Add(e)
			}
		}
		m := c.join(6, 0)
		for n := range warm + measured {
			var moving []int
			for i := range entities {
				if turn := i/4 + []int{0, 2, 1, 3}[i%4]*every/4; (turn+n)%every == 0 {
					moving = append(moving, i)
				}
			}
			c.tick(moving...)
		}
		return float64(sum(m.sizes[warm:])) / measured
	}
	table := ""
	for i, every := range []int{1, 4, 16} {
		none, two, four := cost(every, 1), cost(every, 2), cost(every, 4)
		t.Logf("each changes in every tick of %2d: %.0f bytes without groups, %.0f with groups of 2, %.0f with groups of 4", every, none, two, four)
		table += fmt.Sprintf("| %s | %.0f | %.0f | %.0f |\n", [...]string{
			"all change in every tick", "each changes in every 4th tick, in turns", "each changes in every 16th tick, in turns",
		}[i], none, two, four)
		require.GreaterOrEqual(t, two, 0.999*none) // packets end elsewhere
		require.GreaterOrEqual(t, four, 0.999*two)
		require.Less(t, four, 4*none)
		if every == 1 {
			require.Less(t, four, 1.02*none, "all of a group is sent anyway")
		}
	}
	page, err := os.ReadFile(filepath.Join("..", "docs", "groups.md"))
	require.NoError(t, err)
	require.Contains(t, string(page), table)
}

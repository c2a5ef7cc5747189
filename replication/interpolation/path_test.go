package interpolation

import (
	"math"
	"math/rand/v2"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/arche-replicate/arche-replicate/replication/internal/replicationtest"
)

// TestPathsThatChange: a path becomes longer or shorter by a tick, 50 ms, with much jitter. Almost always it is
// noticed within two seconds, and once.
func TestPathsThatChange(t *testing.T) {
	const rate, jitter = 20, 0.3 // in ticks
	r := rand.New(rand.NewPCG(replicationtest.Seed(t), 3))
	missed := 0
	for range 200 {
		var p path
		send := func(n int, oneWay float64) (shift float64) {
			for range n {
				shift += p.add(oneWay+jitter*r.ExpFloat64(), rate)
			}
			return shift
		}
		send(300, 2)
		for _, change := range []struct {
			packets     int
			to, expects float64
		}{{40, 3, 1}, {300, 3, 0}, {40, 2, -1}, {300, 2, 0}} {
			if math.Abs(send(change.packets, change.to)-change.expects) > 0.7 {
				missed++
			}
		}
	}
	require.Less(t, missed, 20, "of 800")
}

// TestAPacketThatIsFasterThanOthers does not show a shorter path, nor those after it a longer one.
func TestAPacketThatIsFasterThanOthers(t *testing.T) {
	var p path
	for i := range 1000 {
		offset := 2.
		if i%200 == 150 {
			offset = 1
		}
		require.Zero(t, p.add(offset, 20), "packet %d", i)
	}
}

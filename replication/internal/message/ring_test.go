package message

import (
	"testing"

	"github.com/stretchr/testify/require"
)

// fill puts n items with ids from first on into a ring, and returns the next id.
func fill(r *ring[uint32], first, n uint32) (next uint32) {
	for i := range n {
		r.fit(first, i+1)
		*r.at(first + i) = first + i
	}
	return first + n
}

func TestRingKeepsItsItemsWhileItGrows(t *testing.T) {
	for _, first := range []uint32{0, 5, 1<<32 - 20} { // ids wrap
		var r ring[uint32]
		for i := range uint32(100) {
			r.fit(first, i+1)
			*r.at(first + i) = i
			require.GreaterOrEqual(t, len(r.places), int(i+1))
			require.Less(t, len(r.places), max(2*minPlaces, 2*int(i+1)))
			for k := range i + 1 {
				require.Equal(t, k, *r.at(first + k), "from %d on, with %d items", first, i+1)
			}
		}
	}
}

func TestRingGivesBackWhatABurstTook(t *testing.T) {
	var r ring[uint32]
	next := fill(&r, 0, 1000)
	r.emptied()
	require.Len(t, r.places, 1024)
	for range 8 * shrinkAfter {
		next = fill(&r, next, 3)
		r.emptied()
	}
	require.Len(t, r.places, minPlaces)
}

func TestRingKeepsWhatBurstsTakeAgain(t *testing.T) {
	var r ring[uint32]
	next := uint32(0)
	tick := func() {
		n := uint32(3)
		if next&31 == 0 {
			n = 1000
		}
		next = fill(&r, next, n)
		r.emptied()
	}
	tick()
	require.Zero(t, testing.AllocsPerRun(50*shrinkAfter, tick))
}

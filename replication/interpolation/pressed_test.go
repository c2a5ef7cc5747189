package interpolation

import (
	"testing"

	"github.com/stretchr/testify/require"
)

// TestPressed: many states in a row before which the server had left something unsent show a short budget if they come
// as often as such a server sends them, and not the losses of a world that rests most of the time.
func TestPressed(t *testing.T) {
	for _, c := range []struct {
		ticks float64 // between states
		want  bool
	}{{1, true}, {4, true}, {30, false}} {
		k := clock{rate: 60, interval: 1, any: true}
		for n := range 100 {
			require.Equal(t, c.want && n >= manyUnsettled, k.pressed())
			at := k.newest + c.ticks
			k.settle(at, false)
			k.newest = at
		}
		k.settle(k.newest+c.ticks, true)
		require.False(t, k.pressed())
	}
}

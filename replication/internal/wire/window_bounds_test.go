package wire

import (
	"testing"

	"github.com/stretchr/testify/require"
)

// TestWelcomeBoundsTheWindow: a client keeps states for as many ticks, and no fewer than 8.
func TestWelcomeBoundsTheWindow(t *testing.T) {
	for window, ok := range map[uint8]bool{0: false, 7: false, MinWindow: true, MaxWindow: true, 121: false} {
		m := Welcome{Version: 1, Window: window, TickRate: 60}
		var got Welcome
		require.Equal(t, ok, got.Parse(m.Append(nil)), "window %d", window)
	}
}

package main

import (
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

func TestTransportsAreMeasured(t *testing.T) {
	m := measurement{clients: 4, window: 300 * time.Millisecond, rounds: 1}
	table, err := m.table()
	require.NoError(t, err)
	t.Log(table)
	require.Equal(t, 2+len(carriers)-1, strings.Count(table, "\n"))
	require.Contains(t, table, "| `udp` | +0 | 1.00 | +0 |")
}

// About 200 bytes to a client per tick, and from it an input of about 30 and an acknowledgement.
func TestPacketsAreOfMiddleSize(t *testing.T) {
	m := measurement{clients: 2, window: time.Second}
	played, err := m.play(carriers[1], true)
	require.NoError(t, err)
	require.InDelta(t, 90, float64(played.carried)/played.packets, 20)
}

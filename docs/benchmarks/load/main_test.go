package main

import (
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

func TestLoad(t *testing.T) {
	l := load{clients: 50, quiet: time.Second, flood: time.Second, rate: 5000}
	table, err := l.run()
	t.Logf("%s%v", table, err) // times are not for a machine that runs tests
	require.Contains(t, table, "| flood |")
	require.Equal(t, 50, l.joined)
	require.Equal(t, 3, strings.Count(table, " | 50 | 0 |\n"), "peers, and lost ones")
}

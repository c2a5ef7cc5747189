package main

import (
	"testing"

	"github.com/stretchr/testify/require"
)

// A client in a browser is loaded before it does anything.
func TestAClientIsSmall(t *testing.T) {
	if testing.Short() {
		t.Skip("builds for half a minute")
	}
	_, zipped, err := build("interpolation")
	require.NoError(t, err)
	require.Less(t, zipped, 1_490_000, "bytes, compressed")
}

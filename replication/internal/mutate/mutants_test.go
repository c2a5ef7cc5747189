//go:build !js && !wasip1

package main

import (
	"os"
	"testing"

	"github.com/stretchr/testify/require"
)

// TestEveryFaultCanBePlanted: the list follows the code.
func TestEveryFaultCanBePlanted(t *testing.T) {
	text, err := os.ReadFile("mutants.txt")
	require.NoError(t, err)
	t.Chdir("../../..")
	list, err := parseMutants(text)
	require.NoError(t, err)
	require.GreaterOrEqual(t, len(list), 60)
	for _, m := range list {
		file, planted, err := m.plant()
		require.NoError(t, err)
		before, err := os.ReadFile(file)
		require.NoError(t, err)
		require.NotEqual(t, string(before), string(planted), "%s changes nothing", m)
	}
}

func TestMutantsOfBadListsAreRefused(t *testing.T) {
	for _, text := range []string{"acks ackstate", "- a", "acks ackstate F\nacks ackstate G\n- a\n+ b", "= why"} {
		_, err := parseMutants([]byte(text))
		require.Error(t, err, text)
	}
}

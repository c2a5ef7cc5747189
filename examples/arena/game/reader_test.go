package game

import (
	"strings"
	"testing"

	"github.com/mlange-42/arche/ecs"
	"github.com/stretchr/testify/require"
)

func TestTheReaderReadsEveryComponent(t *testing.T) {
	s, _ := NewSchema()
	components := map[string]bool{}
	for _, line := range strings.Split(s.Text(), "\n") {
		if strings.HasPrefix(line, "message ") {
			break // no components follow
		}
		if component, _, ok := strings.Cut(line, "."); ok {
			components[component] = true
		}
	}
	w := ecs.NewWorld()
	for _, left := range []string{"Velocity", "Gun", "component predict", "predict"} { // for owners only, or refers to an entity
		require.True(t, components[left])
		delete(components, left)
	}
	require.Len(t, NewReader(&w, s).columns, len(components))
}

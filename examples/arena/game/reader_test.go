package game

import (
	"strings"
	"testing"

	"github.com/mlange-42/arche/ecs"
	"github.com/stretchr/testify/require"
)

func TestTheReaderReadsEveryComponent(t *testing.T) {
	s := NewSchema()
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
	require.Len(t, NewReader(&w, s).columns, len(components))
}

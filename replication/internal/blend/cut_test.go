package blend

import (
	"reflect"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/arche-replicate/arche-replicate/replication/internal/schema"
	"github.com/mlange-42/arche/ecs"
)

func TestCutsCompareTheTaggedFields(t *testing.T) {
	type dust struct{ Grains uint64 }
	type wheels struct {
		Mounted [2]uint8 `repl:"counter,cut"`
		Dust    uint64
		Seat    ecs.Entity `repl:"cut"`
	}
	var s schema.Schema
	require.NoError(t, s.Register(reflect.TypeFor[dust](), &schema.Options{}))
	require.NoError(t, s.Register(reflect.TypeFor[wheels](), &schema.Options{}))
	cuts := Cuts(&s)
	require.Len(t, cuts, 1)
	c, comp := &cuts[0], &s.Components[1]
	require.Equal(t, 1, c.Number)
	require.Equal(t, comp.Words, c.Words)
	a := rowOf(comp, wheels{})
	require.False(t, c.Between(a, a))
	require.True(t, c.Between(a, rowOf(comp, wheels{Mounted: [2]uint8{1: 1}})))
	require.False(t, c.Between(a, rowOf(comp, wheels{Dust: 1 << 40})))
	seated := rowOf(comp, wheels{})
	seated[len(seated)-2] = 5
	require.True(t, c.Between(a, seated))
}

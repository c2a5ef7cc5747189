//go:build !nounsafe

package replication

import (
	"reflect"
	"testing"

	"github.com/stretchr/testify/require"
)

func TestKernelsDoNotAllocate(t *testing.T) {
	c := componentOf(t, reflect.TypeFor[schemaShip]())
	values := make([]schemaShip, 300)
	p := reflect.ValueOf(values).UnsafePointer()
	dst := make([]uint32, len(values)*c.words)
	require.Zero(t, testing.AllocsPerRun(10, func() { c.readColumn(dst, p, len(values)) }))
	require.Zero(t, testing.AllocsPerRun(10, func() { c.write(p, dst[:c.words]) }))
	require.Zero(t, testing.AllocsPerRun(10, func() { c.validRow(dst[:c.words]) }))
}

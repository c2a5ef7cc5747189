package replication

import (
	"testing"

	"github.com/stretchr/testify/require"
)

func TestTwoServersAndClientsInOneProcess(t *testing.T) {
	schema := testSchema()
	a, b := connectedWire(t, schema), connectedWire(t, schema, WithMTU(200))
	ga, gb := newGame(1, a.world, schema, 10), newGame(2, b.world, schema, 10)
	for range 100 {
		ga.step()
		gb.step()
		a.round()
		b.round()
		a.requireEqual()
		b.requireEqual()
	}
}

// twoIntoOneWorld returns wires of two servers whose clients share a world.
func twoIntoOneWorld(t testing.TB) (a, b *fixture) {
	schema := testSchema()
	a, b = newWire(t, schema), newWire(t, schema)
	b.mirror = a.mirror
	b.client = NewClientWith(a.mirror, schema, func(p []byte) error {
		b.up = append(b.up, append([]byte(nil), p...))
		return nil
	}, WithSeed(5))
	return a, b
}

// TestTwoClientsInOneWorld replicates two servers side by side.
func TestTwoClientsInOneWorld(t *testing.T) {
	a, b := twoIntoOneWorld(t)
	ga, gb := newGame(1, a.world, faceOf(a.server.schema), 10), newGame(2, b.world, faceOf(b.server.schema), 10)
	for range 200 {
		ga.step()
		gb.step()
		a.round()
		b.round()
	}
	a.requireEqual()
	b.requireEqual()
	require.Equal(t, a.server.Stats().Entities+b.server.Stats().Entities, a.mirror.Stats().Entities.Used)
}

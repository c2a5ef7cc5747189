package replication

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/arche-replicate/arche-replicate/replication/internal/history"
	"github.com/arche-replicate/arche-replicate/replication/internal/receive"
	"github.com/arche-replicate/arche-replicate/replication/internal/wire"
	"github.com/mlange-42/arche/ecs"
)

type tHalf struct {
	H float32 `repl:"half"`
}

// tHalves has rows that are shared, since they are long.
type tHalves struct {
	H [40]float32 `repl:"half"`
}

// TestCodesWithGapsAreChecked: a code in the range of its field that stands for no value is refused with its packet, in
// each way in which a row can come.
func TestCodesWithGapsAreChecked(t *testing.T) {
	schema := NewSchema()
	Register[tHalf](schema)
	Register[tHalves](schema)
	for _, coding := range []Coding{Packed, Compact} {
		for component := range 2 {
			for _, full := range []bool{false, true} {
				for _, bad := range []bool{false, true} {
					x := connectedWire(t, schema, withCoding(coding))
					half, halves := ecs.ComponentID[tHalf](x.world), ecs.ComponentID[tHalves](x.world)
					e := x.spawn(half, halves)
					x.rounds(8)
					x.requireEqual()
					if full {
						e = x.spawn(half, halves)
					}
					(*tHalf)(x.world.Get(e, half)).H = 2
					(*tHalves)(x.world.Get(e, halves)).H[7] = 2
					x.server.captured = append(x.server.captured, func() {
						slot, ok := x.server.snap.SlotOf(e)
						require.True(t, ok)
						var versions history.Versions
						require.True(t, x.server.snap.Histories[component].Find(slot, &versions))
						row, found := versions.At(x.server.snap.Tick)
						require.Equal(t, history.Present, found)
						if bad {
							row[0] |= 0x7c01 // no half has it: it is not a number
						}
					})
					packets := x.replicate()
					require.Len(t, packets, 1)
					err := x.client.Receive(packets[0])
					if bad {
						require.ErrorIs(t, err, wire.ErrMalformed, "%v, component %d, full %v", coding, component, full)
					} else {
						require.NoError(t, err)
					}
				}
			}
		}
	}
}

// TestNothingIsSettledAfterAForgottenPast: a client that forgets all states since they are too old knows of no tick as of
// which it has everything, until its next session.
func TestNothingIsSettledAfterAForgottenPast(t *testing.T) {
	oneGoroutine(t)
	x := newWire(t, testSchema(), WithTimeout(0))
	x.restart(faceOf(x.server.schema), 8, WithTimeout(0))
	position := ecs.ComponentID[tPosition](x.world)
	e := x.spawn(position)
	move := func() {
		for range 20 {
			(*tPosition)(x.world.Get(e, position)).X++
			x.round()
		}
	}
	move()
	_, ok := x.client.Settled()
	require.True(t, ok)
	var packets [][]byte
	for range receive.GenerationSpan + 2 {
		packets = x.replicate()
	}
	for len(packets) == 0 {
		packets = x.replicate()
	}
	require.ErrorIs(t, x.client.Receive(packets[0]), wire.ErrStale)
	_, ok = x.client.Settled()
	require.False(t, ok)
	move()
	_, ok = x.client.Settled()
	require.True(t, ok)
	x.requireEqual()
}

package replication

import (
	"testing"

	"github.com/arche-replicate/arche-replicate/replication/internal/config"
	"github.com/mlange-42/arche/ecs"
	"github.com/stretchr/testify/require"
)

// TestSharedRowsOutliveTheirBaselines: a packet may make the client drop the very baseline with
// which it shares a row. That takes a server that uses older baselines than the window in its
// welcome allows.
func TestSharedRowsOutliveTheirBaselines(t *testing.T) {
	for _, coding := range []Coding{Packed, Compact} {
		t.Run(coding.String(), func(t *testing.T) {
			x := connectedWire(t, testSchema(), config.ServerFunc(func(o *config.ServerOptions) { o.Compact = coding == Compact }))
			x.client.recv.Keep = 0 // as if the window were 0 ticks
			bulk, health := ecs.ComponentID[tBulk](x.world), ecs.ComponentID[tHealth](x.world)
			e := x.spawn(bulk, health)
			cells := &(*tBulk)(x.world.Get(e, bulk)).Cells
			cells[0] = 1
			x.round() // the server learns that this arrived
			unheard := func(hp int16, cell uint64) {
				(*tHealth)(x.world.Get(e, health)).HP, cells[0] = hp, cell
				x.deliver(x.replicate()...)
				x.apply()
				requireSharedRows(t, x.client)
			}
			unheard(2, 1) // the first is dropped, and its row is shared with this one
			require.EqualValues(t, 1, x.client.recv.Replicas.At(uint32(x.slotOf(e))).Held.N)
			require.EqualValues(t, 1, x.peer.Stats().FullStates, "only the first state was sent in full")

			other := x.spawn(bulk) // needs a row
			(*tBulk)(x.world.Get(other, bulk)).Cells[0] = 9
			x.round()
			requireSharedRows(t, x.client)
			require.Nil(t, x.client.Verify())
			x.requireEqual()
		})
	}
}

// TestALateStateKeepsTheRowsOfItsBaseline: the baseline is dropped when the state arrives, as a later one is old enough.
func TestALateStateKeepsTheRowsOfItsBaseline(t *testing.T) {
	x := connectedWire(t, testSchema())
	bulk, position := ecs.ComponentID[tBulk](x.world), ecs.ComponentID[tPosition](x.world)
	e := x.spawn(bulk, position)
	cells := &(*tBulk)(x.world.Get(e, bulk)).Cells
	step := 0
	move := func(cell uint64) [][]byte {
		step++
		(*tPosition)(x.world.Get(e, position)).X += 0.5 + float32(step*step%7)/20 // so that predictions are a little off
		cells[0] = cell
		return x.replicate()
	}
	for range 40 {
		x.deliver(move(1)...)
		x.answer(x.apply()...)
	}
	x.deliver(move(2)...) // the server does not learn that this arrived
	x.apply()
	late := move(1) // against a baseline from before that, with the same cells
	x.client.recv.Keep = 5
	x.client.recv.NearTick += 20
	x.deliver(late...)
	requireSharedRows(t, x.client)
	require.EqualValues(t, 1, x.peer.Stats().FullStates)
}

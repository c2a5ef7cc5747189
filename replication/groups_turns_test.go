package replication

import (
	"testing"

	"github.com/arche-replicate/arche-replicate/replication/internal/ackstate"
	"github.com/arche-replicate/arche-replicate/replication/internal/receive"
	"github.com/mlange-42/arche/ecs"
	"github.com/stretchr/testify/require"
)

// TestGroupsLeaveRoomForTheRest: groups are sent first, and these are more than may be in flight.
// The client can't apply any of them before it has the missing parts of entities without a group.
func TestGroupsLeaveRoomForTheRest(t *testing.T) {
	for _, coding := range []Coding{Packed, Compact} {
		t.Run(coding.String(), func(t *testing.T) {
			x := newWire(t, testSchema(), WithMTU(128))
			x.peer.conn.Compact = coding == Compact
			x.rounds(5)
			bulk := ecs.ComponentID[tBulk](x.world)
			for i := range receive.MaxAssemblies {
				fillBulk(x, x.spawn(bulk), uint64(i+1))
			}
			for i, p := range x.replicate() {
				if i%3 > 0 { // parts of all entities, but not all parts
					x.deliver(p)
				}
			}
			require.Len(t, x.client.recv.Parts, receive.MaxAssemblies)
			for i := range 100 {
				g := x.server.NewGroup()
				for j := range 3 {
					e := x.spawn(bulk)
					fillBulk(x, e, uint64(1000+3*i+j))
					g.Add(e)
				}
			}
			x.rounds(100)
			require.GreaterOrEqual(t, x.peer.Stats().Parts, uint64(ackstate.MaxInFlight))
			x.requireEqual()
		})
	}
}

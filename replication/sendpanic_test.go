package replication

import (
	"testing"

	"github.com/mlange-42/arche/ecs"
	"github.com/stretchr/testify/require"
)

// TestSendPanicsForgetNothing: when a send function panics, its packet is lost, and nothing that
// belongs into later ones.
func TestSendPanicsForgetNothing(t *testing.T) {
	for n := range 9 { // the packet at which it panics
		x := connectedWire(t, testSchema(), WithMTU(64))
		position, bulk := ecs.ComponentID[tPosition](x.world), ecs.ComponentID[tBulk](x.world)
		var entities []ecs.Entity
		for i := range 40 {
			ids := []ecs.ID{position}
			if i%10 == 9 {
				ids = append(ids, bulk) // sent in parts
			}
			entities = append(entities, x.spawn(ids...))
		}
		x.rounds(100)
		x.requireEqual()
		for i, e := range entities {
			(*tPosition)(x.world.Get(e, position)).X += float32(i)
			if x.world.Has(e, bulk) {
				for k := range 40 {
					(*tBulk)(x.world.Get(e, bulk)).Cells[k] = uint64(i+k) * 0x9e3779b97f4a7c15
				}
			}
		}
		x.world.RemoveEntity(entities[3])
		x.world.RemoveEntity(entities[33])
		send, left := x.peer.out.Send, n
		x.peer.out.Send = func(p []byte) error {
			if left--; left < 0 {
				panic("no network")
			}
			return send(p)
		}
		require.PanicsWithValue(t, "no network", x.server.Replicate)
		x.peer.out.Send = send
		x.rounds(200)
		x.requireEqual()
	}
}

// TestPeersWhoseSendPanicsTimeOut: a peer whose client is silent and whose send function panics from some moment on is
// gone at its timeout, and keeps no later Replicate from serving the others.
func TestPeersWhoseSendPanicsTimeOut(t *testing.T) {
	const timeout = 60
	x := connectedWire(t, testSchema(), WithTimeout(ofTicks(timeout)))
	x.rounds(5)
	x.peer.out.Send = func([]byte) error { panic("gone") }
	panics := 0
	for range 5 * timeout {
		func() {
			defer func() {
				if recover() != nil {
					panics++
				}
			}()
			x.server.Replicate()
		}()
	}
	require.Less(t, panics, timeout)
	require.EqualValues(t, 1, x.server.Stats().Timeouts)
	require.Empty(t, x.server.peers)
}

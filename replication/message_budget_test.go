package replication

import (
	"fmt"
	"strings"
	"testing"

	"github.com/arche-replicate/arche-replicate/replication/netsim"
	"github.com/mlange-42/arche/ecs"
	"github.com/stretchr/testify/require"
)

type mDebris struct {
	Text string `repl:"max=200"`
}

// TestWaitingMessagesLeaveRoomForTheWorld: many entities spawn, with a message each, under a budget for which that is
// much at once. The messages wait for the entities, and must not be sent again until the budget has nothing left for
// these.
func TestWaitingMessagesLeaveRoomForTheWorld(t *testing.T) {
	t.Parallel()
	const pieces, movers = 60, 200
	for _, c := range []struct{ latency, budget int }{{0, 4000}, {1, 4000}, {3, 1000}, {3, 2000}} {
		t.Run(fmt.Sprintf("%+v", c), func(t *testing.T) {
			schema := func() *Schema {
				s := testSchema()
				RegisterMessage[mDebris](s)
				return s
			}
			w, cw := ecs.NewWorld(), ecs.NewWorld()
			server := NewServer(&w, schema())
			link := netsim.NewLink(1, netsim.Config{Latency: float64(c.latency)})
			peer := server.Connect(link.Down.Send)
			client := NewClient(&cw, schema(), link.Up.Send)
			peer.SetBudget(c.budget)
			got := 0
			OnServerMessage(client, func(mDebris) { got++ })
			position, marker := ecs.ComponentID[tPosition](&w), ReplicatedID(&w)
			var moving []ecs.Entity
			for range movers {
				moving = append(moving, w.NewEntity(position, marker))
			}
			text := mDebris{strings.Repeat("x", 100)}
			const before = 1200
			for tick := range before + 60*60 {
				for i, e := range moving {
					(*tPosition)(w.Get(e, position)).X = float32(tick * (i + 1) % 900)
				}
				if tick >= before && tick < before+pieces {
					require.NoError(t, SendToViewers(server, w.NewEntity(position, marker), text))
				}
				server.Replicate()
				link.Step()
				link.Down.Receive(func(packet []byte) { _ = client.Receive(packet) })
				require.NoError(t, client.Apply())
				link.Up.Receive(func(packet []byte) { require.NoError(t, peer.Receive(packet)) })
				if got == pieces {
					break
				}
			}
			require.Equal(t, pieces, got)
			t.Logf("%d messages were sent again", peer.Stats().MessagesResent)
			require.Less(t, peer.Stats().MessagesResent, uint64(4*pieces))
		})
	}
}

package replication

import (
	"bytes"
	"fmt"
	"testing"

	"github.com/mlange-42/arche/ecs"
	"github.com/stretchr/testify/require"
)

// TestAClientThatMovedJoinsAgain: its packets come from another address from some moment on, for which the server's
// loop makes a new peer, but what the server sends to the old one still arrives. The client notices that nothing of
// it arrives, and joins from the new address.
func TestAClientThatMovedJoinsAgain(t *testing.T) {
	for _, opts := range [][]ServerOption{nil, {WithoutChecksum()}, {WithTickRate(20)}, {WithTickRate(120)}} {
		for _, moves := range []bool{true, false} { // the entities
			for _, messages := range []bool{false, true} {
				t.Run(fmt.Sprint(len(opts), moves, messages), func(t *testing.T) {
					schema := testSchema()
					if messages {
						schema = messageSchema()
					}
					x := newWire(t, schema, opts...)
					x.restart(faceOf(x.server.schema), 7)
					e := x.spawn(ecs.ComponentID[tPosition](x.world))
					x.rounds(200)
					rate := x.client.TickRate()
					require.True(t, x.client.Complete())
					former := x.peer
					x.connect() // for the new address; the former peer still sends to the client
					joined := 0
					for n := 1; joined == 0 && n < 40*rate; n++ {
						if moves {
							(*tPosition)(x.world.Get(e, ecs.ComponentID[tPosition](x.world))).X++
						}
						x.round()
						require.Equal(t, StatusConnected, x.client.Status())
						if x.peer.Connected() {
							joined = n
						}
					}
					t.Logf("joined after %.1f s", float64(joined)/float64(rate))
					require.NotZero(t, joined)
					limit := 7.5 // seconds; an idle server sends one packet per second
					if moves {
						limit = 3.5
					}
					require.LessOrEqual(t, float64(joined)/float64(rate), limit)
					x.rounds(5)
					x.requireEqual()
					require.EqualValues(t, 2, x.client.Stats().Sessions)
					require.EqualValues(t, 1, x.client.Stats().Spawns, "the replica stays")
					require.True(t, former.Connected())
				})
			}
		}
	}
}

// TestAClientInContactSendsNoHellos, over long round trips and at all
// intervals.
func TestAClientInContactSendsNoHellos(t *testing.T) {
	for _, trip := range []int{1, 12, 40} {
		for _, interval := range []int{1, 3, 20} {
			x := newWire(t, testSchema())
			e := x.spawn(ecs.ComponentID[tPosition](x.world))
			x.rounds(5)
			x.peer.SetSendInterval(interval)
			late, hellos := make([][][]byte, trip), 0
			for n := range 2000 {
				(*tPosition)(x.world.Get(e, ecs.ComponentID[tPosition](x.world))).X++
				x.deliver(x.replicate()...)
				x.answer(late[n%trip]...)
				late[n%trip] = x.apply()
				for _, p := range late[n%trip] {
					if bytes.HasPrefix(p[4:], []byte{0, 1}) && len(p) == 64 {
						hellos++
					}
				}
			}
			require.Zero(t, hellos, "round trip %d, interval %d", trip, interval)
		}
	}
}

// TestStatusOfAClientWhosePacketsAreLost: nothing that it sends arrives, but what the server sends does.
func TestStatusOfAClientWhosePacketsAreLost(t *testing.T) {
	x := newWire(t, testSchema(), neverSilent)
	x.restart(faceOf(x.server.schema), 7)
	e := x.spawn(ecs.ComponentID[tPosition](x.world))
	x.rounds(200)
	play := func(ticks int) {
		for range ticks {
			(*tPosition)(x.world.Get(e, ecs.ComponentID[tPosition](x.world))).X++
			x.deliver(x.replicate()...)
			x.apply() // lost
		}
	}
	play(defaultClientTimeout - 10)
	require.Equal(t, StatusConnected, x.client.Status())
	play(8 * 60)
	require.Equal(t, StatusReconnecting, x.client.Status())
	x.requireEqual("it still shows what comes")
	x.rounds(60)
	require.Equal(t, StatusConnected, x.client.Status())
	require.EqualValues(t, 1, x.client.Stats().Sessions)
}

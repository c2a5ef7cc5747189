package replication

import (
	"fmt"
	"testing"

	"github.com/arche-replicate/arche-replicate/replication/netsim"
	"github.com/mlange-42/arche/ecs"
	"github.com/stretchr/testify/require"
)

// mLong is a message by whose size a packet with it is known.
type mLong struct {
	A [40]uint64
}

const longMessage = 300 // bytes, less than it takes

// TestALostMessageIsSentAgainAfterARoundTrip, every time that it is lost, since states and inputs that are sent after it
// arrive. If it had to wait for timeouts, these would double.
func TestALostMessageIsSentAgainAfterARoundTrip(t *testing.T) {
	const latency, trip = 3, 2*3 + 1
	for _, up := range []bool{false, true} {
		for losses := range 5 {
			t.Run(fmt.Sprintf("up=%v,losses=%d", up, losses), func(t *testing.T) {
				s := NewSchema()
				Register[far](s)
				RegisterMessage[mLong](s)
				RegisterInput[uint8Input](s)
				world := ecs.NewWorld()
				server := NewServer(&world, s)
				e := connect(server, 1, netsim.Config{Latency: latency})
				place := ecs.ComponentID[far](&world)
				mover := world.NewEntity(place, ReplicatedID(&world))
				arrived := 0
				OnServerMessage(e.client, func(mLong) { arrived++ })
				OnClientMessage(server, func(*Peer, mLong) { arrived++ })
				lost, since := 0, 0
				for n := 0; arrived == 0 && since < 200; n++ {
					(*far)(world.Get(mover, place)).X = float32(n)
					if n == 100 {
						m := mLong{A: [40]uint64{39: 1}}
						if up {
							require.NoError(t, SendToServer(e.client, m))
						} else {
							require.NoError(t, SendToClient(e.peer, m))
						}
					}
					if n >= 100 {
						since = n - 100
					}
					if e.peer.Connected() {
						_, _ = Input[uint8Input](e.peer, server.Tick()+1)
					}
					server.Replicate()
					e.link.Step()
					keep := func(p []byte) bool {
						if len(p) < longMessage || lost == losses || n < 100 {
							return true
						}
						lost++
						return false
					}
					e.link.Down.Receive(func(p []byte) {
						if keep(p) {
							_ = e.client.Receive(p)
						}
					})
					if n >= 50 {
						_ = SetInput(e.client, e.client.InputTick(), uint8Input{uint8(n)})
					}
					require.NoError(t, e.client.Apply())
					e.link.Up.Receive(func(p []byte) {
						if keep(p) {
							_ = e.peer.Receive(p)
						}
					})
				}
				require.Equal(t, losses, lost)
				require.Less(t, since, latency+2+losses*(trip+6), "ticks")
			})
		}
	}
}

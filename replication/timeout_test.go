package replication

import (
	"fmt"
	"testing"
	"time"

	"github.com/arche-replicate/arche-replicate/delta"
	"github.com/arche-replicate/arche-replicate/replication/internal/session"
	"github.com/arche-replicate/arche-replicate/replication/internal/snapshot"
	"github.com/arche-replicate/arche-replicate/replication/internal/wire"
	"github.com/arche-replicate/arche-replicate/replication/netsim"
	"github.com/stretchr/testify/require"

	"github.com/arche-replicate/arche-replicate/replication/internal/replicationtest"
)

// TestSilentPeerIsDropped after exactly the configured number of ticks; and a client that is still
// there reconnects.
func TestSilentPeerIsDropped(t *testing.T) {
	for _, first := range []uint32{0, 1<<32 - 120, 1<<31 - 120} {
		x, e, move := crowd(t, 3, WithTimeout(ofTicks(100)), replicationtest.FirstTick(first))
		quiet := x.server.Connect(func([]byte) error { return nil }) // its client never sends
		id := x.client.session.ID
		for range 100 {
			x.round()
			require.NoError(t, quiet.Err())
			require.NoError(t, x.peer.Err(), "its client answers what is sent now and then")
		}
		x.round()
		require.EqualError(t, quiet.Err(), "replication: disconnected: timeout")
		require.EqualValues(t, 1, x.server.Stats().Timeouts)

		move(e[0], 1)
		x.round()
		received := x.server.snap.Tick
		for x.peer.Err() == nil {
			x.deliver(x.replicate()...)
			x.apply() // its packets are lost
			require.LessOrEqual(t, x.server.snap.Tick-received, delta.Tick(101))
		}
		require.Equal(t, delta.Tick(101), x.server.snap.Tick-received)
		require.Equal(t, Reason{Code: ReasonTimeout}, requireDisconnected(t, x.peer.Err()).Reason)
		require.Equal(t, StatusReconnecting, x.client.Status())
		require.EqualValues(t, 2, x.server.Stats().Timeouts)
		require.Zero(t, x.server.Stats().Peers)
		x.connect()
		x.rounds(10)
		require.Equal(t, StatusConnected, x.client.Status())
		require.NotEqual(t, id, x.client.session.ID)
		x.requireEqual()
	}
}

// TestSilentPeerIsKept with a timeout of 0.
func TestSilentPeerIsKept(t *testing.T) {
	x, _, _ := crowd(t, 3, WithTimeout(0))
	x.server.Connect(func([]byte) error { return nil })
	for range 20_000 {
		x.replicate()
	}
	require.Equal(t, 2, x.server.Stats().Peers)
	before := x.peer.Stats()
	x.rounds(5)
	x.requireEqual()
	require.Equal(t, before.FullStates, x.peer.Stats().FullStates)
}

// TestIdleWorldIsNotTakenForADeadServer: a few bytes every second show that the server lives, and
// the acks show that the client does.
func TestIdleWorldIsNotTakenForADeadServer(t *testing.T) {
	for name, entities := range map[string]int{"still": 5, "empty": 0} {
		t.Run(name, func(t *testing.T) {
			x, _, _ := crowd(t, entities, WithTimeout(2*ofTicks(200)), WithTickRate(30))
			x.rounds(100)
			before, acks := x.peer.Stats(), x.client.Stats().Acks
			for range 6000 {
				x.round()
				require.Equal(t, StatusConnected, x.client.Status())
				require.NoError(t, x.peer.Err())
				require.LessOrEqual(t, x.server.snap.Tick-x.client.Tick(), uint32(30))
			}
			now := x.peer.Stats()
			require.EqualValues(t, 6000/30, now.Packets-before.Packets)
			require.EqualValues(t, 7*6000/30, now.Bytes-before.Bytes)
			require.EqualValues(t, 6000/30, x.client.Stats().Acks-acks)
			require.InDelta(t, 1, x.peer.RoundTrip(), 0.2)
			require.Zero(t, now.Lost)
		})
	}
}

// TestKeepAlivesAreFrequentEnough for timeouts shorter than a second.
func TestKeepAlivesAreFrequentEnough(t *testing.T) {
	for _, timeout := range []int{4, 10, 59} {
		x, _, _ := crowd(t, 2, WithTimeout(ofTicks(timeout)))
		x.rounds(500)
		require.NoError(t, x.peer.Err(), "%d", timeout)
	}
}

// TestBusyPeersGetNoKeepAlives: other packets serve as well.
func TestBusyPeersGetNoKeepAlives(t *testing.T) {
	x, e, move := crowd(t, 1)
	x.rounds(60)
	before := x.peer.Stats()
	for i := range 590 {
		if i%59 == 0 {
			move(e[0], 1)
		}
		x.round()
	}
	now := x.peer.Stats()
	require.EqualValues(t, 10, now.Packets-before.Packets)
	require.EqualValues(t, 10, now.Updates-before.Updates)
}

// TestKeepAlivesRespectIntervalAndBudget of their peer.
func TestKeepAlivesRespectIntervalAndBudget(t *testing.T) {
	x, _, _ := crowd(t, 2)
	x.peer.SetSendInterval(7)
	x.rounds(100)
	x.peer.out.Send = func(p []byte) error {
		require.Zero(t, (x.server.snap.Tick+x.peer.acked.Phase)%7)
		x.down = append(x.down, append([]byte(nil), p...))
		return nil
	}
	before := x.peer.Stats().Packets
	x.rounds(630)
	require.InDelta(t, 10, x.peer.Stats().Packets-before, 1)
	x.peer.SetSendInterval(1)
	x.peer.SetBudget(100)
	x.peer.out.Send = func([]byte) error { return nil }
	x.rounds(600)
	require.Greater(t, x.peer.out.Budget.Tokens, int64(0))
}

// TestAnEmptyWorldThatWakes after more ticks than serial arithmetic can distinguish.
func TestAnEmptyWorldThatWakes(t *testing.T) {
	x := connectedWire(t, testSchema(), WithTimeout(0))
	e := x.spawn()
	x.rounds(4)
	x.world.RemoveEntity(e)
	x.rounds(4)
	for range 9 {
		x.jump(1 << 28)
		x.rounds(snapshot.RefreshShare + 3)
	}
	x.spawn()
	x.rounds(4)
	x.requireEqual()
	require.EqualValues(t, 2, x.client.Stats().Spawns)
}

// TestSessionSurvivesAnOutage in both directions, for much longer than the client's timeout: the
// client asks the server whether it is still known, and it is.
func TestSessionSurvivesAnOutage(t *testing.T) {
	for name, opts := range map[string][]ServerOption{"checksum": nil, "none": {WithoutChecksum()}} {
		t.Run(name, func(t *testing.T) {
			x, e, move := crowd(t, 50, append(opts, WithTimeout(0))...)
			id := x.client.session.ID
			move(e[0], 1)
			x.round()
			for n := range 3600 { // a minute
				move(e[0], 0.01)
				x.replicate() // lost
				for _, p := range x.apply() {
					require.Less(t, len(p), 65)
				}
				require.Equal(t, n >= defaultClientTimeout-1, x.client.Status() == StatusReconnecting, "%d", n)
			}
			before := x.peer.Stats()
			x.rounds(40)
			x.requireEqual()
			require.Equal(t, StatusConnected, x.client.Status())
			require.Equal(t, id, x.client.session.ID)
			require.LessOrEqual(t, x.peer.Stats().FullStates-before.FullStates, uint64(1), "what rested is known still")
			require.EqualValues(t, 50, x.client.Stats().Spawns)
			require.EqualValues(t, 1, x.client.Stats().Sessions)
		})
	}
}

// TestServerTimeoutIsConfigurable with WithTimeout of the client.
func TestServerTimeoutIsConfigurable(t *testing.T) {
	for _, patience := range []int{1, 50, 0} {
		x := newWire(t, testSchema())
		x.restart(faceOf(x.server.schema), 7, WithTimeout(ofTicks(patience)))
		x.rounds(20)
		x.spawn()
		x.round()
		for n := range 2000 {
			x.apply()
			require.Equal(t, patience > 0 && n >= patience-1, x.client.Status() == StatusReconnecting, "%d", n)
		}
	}
}

// TestSearchingForTheServerIsCheap: a client that lost its server does not flood the network.
func TestSearchingForTheServerIsCheap(t *testing.T) {
	x, _, _ := crowd(t, 1)
	packets := 0
	for range 60 * 60 {
		packets += len(x.apply())
	}
	require.Less(t, packets, 60*60/session.IntroduceRarer+session.Patience/session.IntroduceEvery+5)
	require.Greater(t, packets, 60)
}

// TestOnlyUnusualSilenceIsProbed: a client knows after some packets of its server how long that is silent.
func TestOnlyUnusualSilenceIsProbed(t *testing.T) {
	for _, c := range []struct {
		name                  string
		rate, interval, calls int // of Apply per tick of the server, without Advance
		move                  bool
	}{
		{"idle", 60, 1, 1, false},
		{"idle, slow server", 20, 1, 1, false},
		{"idle, many frames", 20, 1, 7, false},
		{"busy", 60, 1, 1, true},
		{"busy, long interval", 60, 60, 1, true},
		{"busy, long interval, slow server", 20, 60, 3, true},
	} {
		t.Run(c.name, func(t *testing.T) {
			x, e, move := crowd(t, 3, WithTickRate(c.rate))
			x.peer.SetSendInterval(c.interval)
			hellos := 0
			tick := func() {
				if c.move {
					move(e[0], 1)
				}
				x.deliver(x.replicate()...)
				for range c.calls {
					for _, p := range x.apply() {
						if wire.OpenHandshake(p) != nil {
							hellos++
						}
						_ = x.peer.Receive(p)
					}
				}
			}
			for range 4*c.rate + 4*c.interval {
				tick()
			}
			hellos = 0
			for range 10_000 {
				tick()
				require.Equal(t, StatusConnected, x.client.Status())
			}
			require.Zero(t, hellos)
			for range 4 * max(c.rate, c.interval) * c.calls {
				x.apply()
			}
			require.True(t, x.client.session.State.Seeks(), "%+v", x.client.session)
		})
	}
}

// TestANewAddress: the packets of a client reach the server from another address, as when its network changes, and
// nothing reaches the client at the old one. It is connected again after a few seconds, not after its timeout, whatever
// the tick rate, and though its first question is lost; and the next time as well.
func TestANewAddress(t *testing.T) {
	for _, rate := range []int{60, 10} {
		t.Run(fmt.Sprint(rate), func(t *testing.T) {
			x, e, move := crowd(t, 10, WithTickRate(rate))
			lost := 0
			tick := func() {
				move(e[0], 1)
				x.deliver(x.replicate()...)
				for _, p := range x.apply() {
					if wire.OpenHandshake(p) != nil && lost > 0 {
						lost--
						continue
					}
					_ = x.peer.Receive(p)
				}
			}
			for range 60 {
				tick()
			}
			for range 4 {
				id, old := x.client.session.ID, x.peer
				old.out.Send = func([]byte) error { return nil }
				x.connect()
				lost = 1
				for n := 0; x.client.session.ID == id || !x.client.Complete(); n++ {
					require.Less(t, n, 5*rate)
					tick()
					require.Equal(t, StatusConnected, x.client.Status())
				}
				require.NoError(t, old.Err(), "nobody knows that both are the same client")
			}
			x.rounds(3)
			x.requireEqual()
		})
	}
}

// TestTimeoutsUnderLoss: a bad network is not taken for a dead one.
func TestTimeoutsUnderLoss(t *testing.T) {
	seed := seedOf(t)
	x, _, _ := crowd(t, 3, WithTimeout(ofTicks(1200)))
	e := connect(x.server, seed, netsim.Config{Latency: 6, Jitter: 3, Loss: 0.3, Duplicate: 0.1, Reorder: 0.2, ReorderBy: 6})
	sessions := map[uint64]bool{}
	for range 12_000 {
		x.server.Replicate()
		e.step(t)
		require.NoError(t, e.peer.Err())
		sessions[e.client.session.ID] = true
	}
	delete(sessions, 0)
	require.Len(t, sessions, 1)
}

func TestTimeoutsOutOfRangePanic(t *testing.T) {
	require.PanicsWithValue(t, "replication: a timeout of -1s: use 1ms to 240 hours, or 0 for none", func() { WithTimeout(-time.Second) })
	require.PanicsWithValue(t, "replication: a timeout of 200ns: use 1ms to 240 hours, or 0 for none", func() { WithTimeout(200) }) // a plain number
	require.PanicsWithValue(t, "replication: a timeout of 240h0m1s: use 1ms to 240 hours, or 0 for none", func() { WithTimeout(240*time.Hour + time.Second) })
}

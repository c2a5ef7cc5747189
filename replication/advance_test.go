package replication

import (
	"testing"
	"time"

	"github.com/arche-replicate/arche-replicate/replication/internal/wire"
	"github.com/mlange-42/arche/ecs"
	"github.com/stretchr/testify/require"
)

// frames plays some seconds of a server with 60 ticks per second, and of the client's frames, and returns
// how many packets the client sent.
func (x *fixture) frames(seconds float64, fps int) (packets int) {
	tick, frame := time.Second/60, time.Second/time.Duration(fps)
	end := time.Duration(seconds * float64(time.Second))
	for now, nextTick, nextFrame := time.Duration(0), time.Duration(0), time.Duration(0); ; {
		if now = min(nextTick, nextFrame); now >= end {
			return packets
		}
		if now == nextTick {
			x.deliver(x.replicate()...)
			nextTick += tick
		}
		if now == nextFrame {
			x.client.Advance(frame)
			up := x.apply()
			packets += len(up)
			x.answer(up...)
			nextFrame += frame
		}
	}
}

// TestFramesAreNotTicks: what a client does by time does not depend on how often it calls Apply.
func TestFramesAreNotTicks(t *testing.T) {
	for _, fps := range []int{30, 60, 144, 240} {
		x := connectedWire(t, messageSchema())
		x.frames(2, fps)
		require.True(t, x.client.Connected())
		before := x.client.Stats()
		for range 600 {
			require.NoError(t, SendToServer(x.client, mHit{}))
			x.frames(1./60, fps)
		}
		sent := x.client.Stats().MessagePackets - before.MessagePackets
		require.LessOrEqual(t, sent, uint64(602), "%d frames per second: once per tick", fps)
		require.GreaterOrEqual(t, sent, uint64(280), "%d frames per second", fps)
		require.EqualValues(t, 600, x.client.Stats().Messages-before.Messages)

		before = x.client.Stats()
		x.frames(10, fps)
		quiet := x.client.Stats().MessagePackets - before.MessagePackets
		require.InDelta(t, 10*60/8, float64(quiet), 10, "%d frames per second: every 8th tick", fps)
	}
}

// TestSilenceIsCountedInTime: the client's timeout is one in ticks, whatever the frame rate.
func TestSilenceIsCountedInTime(t *testing.T) {
	for _, rate := range []int{20, 60} {
		for _, fps := range []int{30, 144} {
			x := connectedWire(t, testSchema(), WithTickRate(rate))
			frames := 0
			for x.client.Status() == StatusConnected {
				x.client.Advance(time.Second / time.Duration(fps))
				_ = x.client.Apply()
				frames++
				require.Less(t, frames, 20*fps)
			}
			require.InDelta(t, 10, float64(frames)/float64(fps), 0.2, "%d ticks and %d frames per second", rate, fps)
			x.up = nil
			for range 10 * fps { // hellos: more at first
				x.client.Advance(time.Second / time.Duration(fps))
				_ = x.client.Apply()
			}
			require.InDelta(t, 64/4+10*2, len(x.up), 8, "later about twice a second")
		}
	}
}

// TestAPauseIsNotSilence: whatever a client's pause was, only a second of it counts as waiting, since its
// packets are received after it.
func TestAPauseIsNotSilence(t *testing.T) {
	x := connectedWire(t, adoptSchema(), WithTimeout(0))
	x.restart(faceOf(x.server.schema), 8, WithTimeout(ofTicks(130)))
	x.rounds(10)
	shot := x.mirror.NewEntity(ecs.ComponentID[aShot](x.mirror))
	Expect[aShot](x.client, shot, ofTicks(100))
	for _, pause := range []time.Duration{30 * time.Second, time.Hour, 1<<63 - 1} {
		x.client.Advance(pause)
		require.NoError(t, x.client.Apply())
		require.Equal(t, StatusConnected, x.client.Status(), "a pause of %v", pause)
		require.Equal(t, pause == 30*time.Second, x.client.Expects(shot))
		x.rounds(61) // the server sends a packet per second
	}
	for range 3 {
		x.client.Advance(time.Second)
		require.NoError(t, x.client.Apply())
	}
	require.Equal(t, StatusReconnecting, x.client.Status(), "three seconds without a packet are silence")
}

// TestReceiveAndAdvanceHaveNoOrder: packets that are received before Advance have arrived in its time, even
// if it is a long one.
func TestReceiveAndAdvanceHaveNoOrder(t *testing.T) {
	for _, first := range []bool{true, false} {
		x := connectedWire(t, messageSchema(), WithTimeout(0))
		x.frames(3, 60)
		require.InDelta(t, float64(x.server.Tick()), x.client.ServerTick(), 1.5)
		var packets [][]byte
		for range 30 * 60 { // half a minute
			packets = append(packets, x.replicate()...)
		}
		if first {
			x.deliver(packets...)
		}
		x.client.Advance(30 * time.Second)
		if !first {
			x.deliver(packets...)
		}
		x.answer(x.apply()...)
		newest := float64(x.client.Tick()) // less and less is sent to silent clients
		require.InDelta(t, newest, x.client.ServerTick(), 1.5, "received first: %v", first)
		require.InDelta(t, newest, float64(x.client.InputTick()), 8)
		x.frames(1, 60)
		require.InDelta(t, float64(x.server.Tick()), x.client.ServerTick(), 1.5)
	}
}

// TestAClockThatGoesBackIsNoMisuse: tickers under load give times that are a little before the last one.
func TestAClockThatGoesBackIsNoMisuse(t *testing.T) {
	x := connectedWire(t, messageSchema())
	x.frames(2, 60)
	at := x.client.ServerTick()
	x.client.Advance(-7 * time.Millisecond)
	x.client.Advance(-time.Hour)
	require.NoError(t, x.client.Apply())
	require.InDelta(t, at, x.client.ServerTick(), 1e-9)
	require.EqualValues(t, 2, x.client.Stats().ClockSteps)
	x.frames(1, 60)
	require.InDelta(t, at+60, x.client.ServerTick(), 2)
}

// TestTimeInAnotherUnitIsSeen in the statistics.
func TestTimeInAnotherUnitIsSeen(t *testing.T) {
	for _, c := range []struct {
		fps  int
		unit float64 // of dt
		pace float64
	}{{60, 1, 1}, {144, 1, 1}, {60, 1e-3, 1000}, {60, 1e3, 1e-3}} {
		x := connectedWire(t, messageSchema())
		x.spawn()
		for i := range 12 * c.fps {
			if tick := i * 60 / c.fps; tick != (i-1)*60/c.fps || c.fps < 60 {
				for range max(60/c.fps, 1) {
					x.deliver(x.replicate()...)
				}
			}
			x.client.Advance(time.Duration(c.unit * float64(time.Second) / float64(c.fps)))
			x.answer(x.apply()...)
		}
		require.InEpsilon(t, c.pace, x.client.Stats().Pace, 0.05, "%+v", c)
	}
}

// TestClientsKnowTheSendInterval from the first packet that arrives after a change, whatever gets lost, and also while
// the world rests.
func TestClientsKnowTheSendInterval(t *testing.T) {
	x := newWire(t, testSchema(), WithTickRate(128))
	e := x.spawn(ecs.ComponentID[tPosition](x.world))
	x.peer.SetSendInterval(5)
	require.Zero(t, x.client.TickRate())
	require.Zero(t, x.client.SendInterval())
	n := 0
	move := func() {
		n++
		(*tPosition)(x.world.Get(e, ecs.ComponentID[tPosition](x.world))).X = float32(n%7 + 1)
	}
	for range 10 {
		move()
		x.round()
	}
	require.Equal(t, 128, x.client.TickRate())
	require.Equal(t, 5, x.client.SendInterval())
	for _, to := range []int{1, 3, 60, 2, 60, 1} {
		x.peer.SetSendInterval(to)
		for range 3 * to { // lost
			move()
			x.replicate()
		}
		for range to {
			move()
			x.round()
		}
		require.Equal(t, to, x.client.SendInterval())
	}
	x.rounds(1000)
	x.peer.SetSendInterval(50)
	x.rounds(128 + 50) // a packet in every second at least
	require.Equal(t, 50, x.client.SendInterval())
}

// TestWelcomesWithoutATickRate are malformed.
func TestWelcomesWithoutATickRate(t *testing.T) {
	x := newWire(t, testSchema())
	x.apply()
	good := wire.Welcome{Version: wire.ProtocolVersion, Window: 64, Nonce: 7, Session: 1, TickRate: 1000}
	for _, bad := range []uint16{0, 1001} {
		m := good
		m.TickRate = bad
		require.ErrorIs(t, x.client.Receive(wire.WithChecksum(m.Append(nil))), ErrMalformed)
	}
	require.NoError(t, x.client.Receive(wire.WithChecksum(good.Append(nil))))
	x.client.Advance(time.Second)
	require.NoError(t, x.client.Apply())
}

// TestPacketsWithoutAnInterval are malformed.
func TestPacketsWithoutAnInterval(t *testing.T) {
	x := connectedWire(t, testSchema())
	for _, interval := range []uint8{0, wire.MaxInterval + 1, 255} {
		h := wire.StateHeader{Sequence: x.client.recv.Window.Newest + 1, Tick: x.client.recv.NearTick + 1, Interval: interval}
		packet := make([]byte, wire.ChecksumSize+h.Size())
		h.Put(packet[wire.ChecksumSize:])
		x.client.session.Down.Write(packet, h.Sequence, h.Tick)
		require.ErrorIs(t, x.client.Receive(packet), ErrMalformed)
		packet[len(packet)-1] ^= 1
		require.ErrorIs(t, x.client.Receive(packet), ErrChecksum)
	}
}

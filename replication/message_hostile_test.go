package replication

import (
	"bytes"
	"testing"

	"github.com/arche-replicate/arche-replicate/bitbuf"
	"github.com/arche-replicate/arche-replicate/replication/internal/message"
	"github.com/arche-replicate/arche-replicate/replication/internal/wire"
	"github.com/mlange-42/arche/ecs"
	"github.com/stretchr/testify/require"
)

// newMessageWire is a session in which messages and inputs of all kinds go both ways, some of them
// lost so that others wait.
func newMessageWire(t testing.TB, packets func(p []byte, down bool), opts ...ServerOption) *fixture {
	s := messageSchema()
	x := newWire(t, s, append(opts, WithMTU(400))...)
	x.restart(s, 7, WithMTU(400))
	OnClientMessage(x.server, func(*Peer, mHit) {})
	OnServerMessage(x.client, func(mHit) {})
	OnServerMessage(x.client, func(mSpark) {})
	health := ecs.ComponentID[tHealth](x.world)
	e := x.spawn(health)
	for i := range uint32(12) {
		if x.peer.Connected() {
			_ = SetInput(x.client, x.client.InputTick(), mMove{Stamp: uint16(i), Aim: float32(i)})
			for range 3 {
				_ = SendToClient(x.peer, mHit{Number: i})
				_ = SendToClient(x.peer, mChat{Number: i})
				_ = SendToClient(x.peer, mSpark{Number: i})
				_ = SendToServer(x.client, mHit{Number: i})
				_ = SendToServer(x.client, mFlash{})
			}
			if i%3 == 0 { // in fragments
				_ = SendToClient(x.peer, mMap{})
				_ = SendToServer(x.client, mMap{Cells: [150]uint64{140: uint64(i)}})
			}
		}
		if i == 6 {
			x.world.RemoveEntity(e)
			x.spawn(health)
		}
		down := x.replicate()
		for j, p := range down {
			if (int(i)+j)%4 != 1 || i < 4 {
				x.deliver(p)
			}
		}
		up := x.apply()
		for j, p := range up {
			if (int(i)+j)%5 != 1 || i < 4 {
				x.answer(p)
			}
		}
		if packets != nil {
			for _, p := range down {
				packets(p, true)
			}
			for _, p := range up {
				packets(p, false)
			}
		}
		x.deliver(x.takeDown()...)
	}
	require.True(t, x.peer.Connected())
	return x
}

// forgeMessages returns a packet with a correct checksum, at the time of the client or the server.
func (x *fixture) forgeMessages(kind wire.PacketKind, down bool, ahead int32, body []byte) []byte {
	h, s := wire.MessageHeader{Kind: kind, Time: x.client.clock.Now + uint32(ahead), Long: true, Epoch: 0}, x.client.session.Up
	if down {
		h.Time, s = uint32(x.server.Tick()+Tick(ahead)), x.client.session.Down
	}
	h.Epoch = s.Epoch
	packet := make([]byte, s.Size()+h.Size(), s.Size()+h.Size()+len(body))
	h.Put(packet[s.Size():])
	packet = append(packet, body...)
	s.Write(packet, 0, h.Time)
	return packet
}

// goesOn requires that the session still works, with as many messages as fit into a channel.
func (x *fixture) goesOn() {
	x.t.Helper()
	x.rounds(3)
	got := 0
	OnServerMessage(x.client, func(mFlash) { got++ })
	require.NoError(x.t, SendToClient(x.peer, mFlash{}))
	x.round()
	require.LessOrEqual(x.t, got, 1+message.MaxWaiting)
}

// TestHostileMessagesAreRefused lists packets that no honest end sends, and their errors.
func TestHostileMessagesAreRefused(t *testing.T) {
	x := newMessageWire(t, nil)
	x.rounds(40) // nothing is in flight
	bits := func(write func(w *bitbuf.Writer)) []byte {
		w := bitbuf.NewWriter(make([]byte, 4000))
		write(&w)
		return bytes.Clone(w.Bytes())
	}
	head := func(w *bitbuf.Writer, acks int) {
		w.WriteExpGolomb(0, 0)
		w.WriteBits(0, uint(acks))
	}
	for _, c := range []struct {
		name string
		down bool
		kind wire.PacketKind
		body []byte
		want string
	}{
		{"empty", false, wire.KindMessages, nil, "replication: malformed packet"},
		{"empty to the client", true, wire.KindMessages, nil, "replication: malformed packet"},
		{"many packets in a tick", false, wire.KindMessages, bits(func(w *bitbuf.Writer) { w.WriteExpGolomb(16, 0); w.WriteBits(0, 3) }), "replication: malformed packet"},
		{"unknown message", false, wire.KindMessages, bits(func(w *bitbuf.Writer) {
			head(w, 2)
			w.WriteBits(1|7<<1, 40)
		}), "replication: malformed packet: message number 7, where the schema has 5 messages"},
		{"unknown message to the client", true, wire.KindMessages, bits(func(w *bitbuf.Writer) {
			head(w, 2)
			w.WriteBits(1|5<<1, 40)
		}), "replication: malformed packet: message number 5, where the schema has 5 messages"},
		{"id beyond the window", false, wire.KindMessages, bits(func(w *bitbuf.Writer) {
			head(w, 2)
			w.WriteBits(1|0<<1, 4)
			w.WriteBits(uint64(x.peer.messages.In[0].Next)+wire.MaxQueued, 16)
			w.WriteBits(0, 64)
		}), "replication: malformed packet"},
		{"value out of range", false, wire.KindMessages, bits(func(w *bitbuf.Writer) {
			head(w, 2)
			w.WriteBits(1|0<<1, 4)
			w.WriteBits(uint64(x.peer.messages.In[0].Next), 16)
			w.WriteBits(1, 32)
			w.WriteBits(1001, 10)
			w.WriteBits(0, 1)
		}), "replication: malformed packet"},
		{"more messages than a packet has", false, wire.KindMessages, bits(func(w *bitbuf.Writer) {
			head(w, 2)
			for range message.MaxPacketMessages + 1 {
				w.WriteBits(1|3<<1, 4)
			}
			w.WriteBits(0, 1)
		}), "replication: malformed packet"},
		{"something behind the end", false, wire.KindMessages, bits(func(w *bitbuf.Writer) { head(w, 3); w.WriteBits(0, 16) }), "replication: malformed packet"},
		{"an ack of what was never sent", false, wire.KindMessages, bits(func(w *bitbuf.Writer) {
			w.WriteExpGolomb(0, 0)
			w.WriteBits(1, 1)
			w.WriteBits(0, 16)
			w.WriteBits(uint64(x.peer.messages.Out[0].Unsent)+1, 16)
			w.WriteExpGolomb(0, 0)
			w.WriteBits(0, 2)
		}), "replication: malformed packet"},
		{"an ack of too many", false, wire.KindMessages, bits(func(w *bitbuf.Writer) {
			w.WriteExpGolomb(0, 0)
			w.WriteBits(1, 1)
			w.WriteBits(0, 32)
			w.WriteExpGolomb(33, 0)
			w.WriteBits(0, 64)
		}), "replication: malformed packet"},
		{"a slot beyond the limit", true, wire.KindMessages, bits(func(w *bitbuf.Writer) {
			head(w, 2)
			w.WriteBits(1|2<<1, 4)
			w.WriteBool(true)
			w.WriteExpGolomb(1, 0)
			w.WriteExpGolomb(1<<20, message.DependencyOrder)
			w.WriteExpGolomb(0, message.WaitOrder)
			w.WriteBits(0, 64)
		}), "replication: malformed packet"},
		{"too much to wait for", true, wire.KindMessages, bits(func(w *bitbuf.Writer) {
			head(w, 2)
			w.WriteBits(1|2<<1, 4)
			w.WriteBool(true)
			w.WriteExpGolomb(65, 0)
			for range 65 {
				w.WriteExpGolomb(0, message.DependencyOrder)
				w.WriteExpGolomb(0, message.WaitOrder)
			}
			w.WriteBits(0, 64)
		}), "replication: malformed packet"},
		{"inputs to the client, to which that is a state packet", true, wire.KindInputs, make([]byte, 9), "replication: checksum does not match: the packet is damaged or of another session"},
		{"inputs cut short", false, wire.KindInputs, make([]byte, 2), "replication: malformed packet"},
		{"inputs and more", false, wire.KindInputs, make([]byte, 40), "replication: malformed packet"},
	} {
		packet := x.forgeMessages(c.kind, c.down, 1, c.body)
		if c.down {
			require.EqualError(t, x.client.Receive(packet), c.want, c.name)
		} else {
			require.EqualError(t, x.peer.Receive(packet), c.want, c.name)
		}
	}
	require.NotZero(t, x.peer.Stats().RefusedAcks)

	// A packet is accepted once, and only in its session and direction.
	require.NoError(t, SendToServer(x.client, mFlash{}))
	up := x.apply()
	last := up[len(up)-1]
	require.NoError(t, x.peer.Receive(last))
	require.ErrorIs(t, x.peer.Receive(last), wire.ErrStale)
	require.EqualValues(t, 1, x.peer.Stats().Duplicates)
	require.ErrorIs(t, x.client.Receive(last), wire.ErrChecksum)
	y := newMessageWire(t, nil, WithSeed(5))
	require.ErrorIs(t, y.peer.Receive(last), wire.ErrChecksum, "of another session")
	z := newWire(t, messageSchema())
	require.ErrorIs(t, z.peer.Receive(last), wire.ErrChecksum, "of one that is not connected")
	x.server.Disconnect(x.peer)
	require.ErrorIs(t, x.peer.Receive(last), wire.ErrUnexpected)
	x.goesOnWithoutPeer()
}

func (x *fixture) goesOnWithoutPeer() {
	x.t.Helper()
	for range 3 {
		x.replicate()
		x.apply()
	}
}

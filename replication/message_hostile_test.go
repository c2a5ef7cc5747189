package replication

import (
	"bytes"
	"math/rand/v2"
	"runtime"
	"testing"

	"github.com/arche-replicate/arche-replicate/bitbuf"
	"github.com/arche-replicate/arche-replicate/delta"
	"github.com/arche-replicate/arche-replicate/replication/internal/message"
	"github.com/arche-replicate/arche-replicate/replication/internal/seam"
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
		h.Time, s = x.server.Tick()+uint32(ahead), x.client.session.Down
	}
	h.Epoch = s.Epoch
	packet := make([]byte, s.Size()+h.Size(), s.Size()+h.Size()+len(body))
	h.Put(packet[s.Size():])
	packet = append(packet, body...)
	s.Write(packet, 0, h.Time)
	return packet
}

// randomMessagesBody returns the bits of a genuine packet of messages or inputs, or nil. To a client, the kind of inputs
// is that of settled states.
func randomMessagesBody(p []byte, down bool) (kind wire.PacketKind, body []byte) {
	if len(p) <= wire.ChecksumSize {
		return 0, nil
	}
	if kind = wire.KindOf(p[wire.ChecksumSize:]); kind != wire.KindMessages && (down || kind != wire.KindInputs) {
		return 0, nil
	}
	h := wire.MessageHeader{Long: p[wire.ChecksumSize]&wire.LongBit != 0}
	if p[wire.ChecksumSize]&^(wire.LongBit|7) != 0 || len(p) < wire.ChecksumSize+h.Size() {
		return 0, nil
	}
	return kind, p[wire.ChecksumSize+h.Size():]
}

// TestAClientThatAcknowledgesNoMessagesGetsFew: it claims to have received every packet, and none of the messages in
// them. What is queued is not sent again and again because of that.
func TestAClientThatAcknowledgesNoMessagesGetsFew(t *testing.T) {
	type long struct{ B [60]byte }
	s := testSchema()
	RegisterMessage[long](s, Immediate())
	x := newWire(t, s)
	x.rounds(10)
	queued := uint64(0)
	for SendToClient(x.peer, long{}) == nil {
		queued++
	}
	x.replicate()
	before := x.peer.Stats()
	for range 10 * 60 {
		x.replicate()
		var buf [64]byte
		w := bitbuf.NewWriter(buf[:])
		w.WriteExpGolomb(0, 0)
		for c := range wire.Channels {
			first := uint16(x.peer.messages.Out[c].First)
			(&wire.ChannelAck{Present: true, Received: uint16(x.server.Tick()), Next: first}).Write(&w)
		}
		w.WriteBool(false)
		require.NoError(t, x.peer.Receive(x.forgeMessages(wire.KindMessages, false, 0, w.Bytes())))
		x.client.clock.Now++
		require.NoError(t, x.peer.Receive(x.client.recv.WriteAcks(x.client.session.AckKey()))) // it is not silent
	}
	resent := x.peer.Stats().MessagesResent - before.MessagesResent
	require.Greater(t, queued, uint64(1000))
	require.Greater(t, resent, 5*queued, "the server believes it")
	require.Less(t, resent, 30*queued)
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

// FuzzMessagePacket puts any bits behind the header of a packet of messages or inputs with a
// correct checksum: the result is an error or messages that the game has to judge, but no panic and
// no hang.
func FuzzMessagePacket(f *testing.F) {
	newMessageWire(f, func(p []byte, down bool) {
		if kind, body := randomMessagesBody(p, down); body != nil {
			f.Add(body, down, kind == wire.KindInputs)
		}
	})
	f.Fuzz(func(t *testing.T, body []byte, down, inputs bool) {
		x := newMessageWire(t, nil)
		kind := wire.KindMessages
		if inputs && !down {
			kind = wire.KindInputs
		}
		before := bytes.Clone(body)
		for i := range int32(3) {
			packet := x.forgeMessages(kind, down, i, body)
			var err error
			if down {
				err = x.client.Receive(packet)
			} else {
				err = x.peer.Receive(packet)
			}
			require.NotErrorIs(t, err, wire.ErrChecksum)
			x.apply()
		}
		require.Equal(t, before, body, "packets are only read")
		x.goesOn()
	})
}

// newStampedWire is a session whose client gives inputs with stamps, long enough that stamps refer to others.
func newStampedWire(t testing.TB, bodies func(p []byte)) *fixture {
	x := newWire(t, messageSchema(), WithMTU(400))
	e := x.spawn(ecs.ComponentID[tHealth](x.world))
	for i := range uint32(60) {
		if x.peer.Connected() {
			at := wire.Stamp{Tick: delta.Tick(x.client.Tick() - 3), Part: uint8(i % 8 * 8), Precision: 3, Valid: true}
			seam.OfClient(x.client).Messages.Shown = at
			_ = SetInput(x.client, x.client.InputTick(), mMove{Stamp: uint16(i), Aim: float32(i)})
			(*tHealth)(x.world.Get(e, ecs.ComponentID[tHealth](x.world))).HP++
		}
		x.deliver(x.replicate()...)
		up := x.apply()
		for _, p := range up {
			if body, ok := stampedBody(p); ok && bodies != nil {
				bodies(body)
			}
		}
		x.answer(up...)
	}
	inputs := &seam.OfPeer(x.peer).Messages.Inputs
	_, ok := inputs.NewestStamp(delta.Tick(x.server.Tick()))
	require.True(t, ok)
	return x
}

// stampedBody returns the bits of a packet of inputs with stamps.
func stampedBody(p []byte) (body []byte, ok bool) {
	h := wire.MessageHeader{}
	if body, ok = h.Parse(p[wire.ChecksumSize:], 0); ok {
		ok = h.Kind == wire.KindInputs && h.Stamped
	}
	return body, ok
}

// FuzzStampedInputs puts any bits behind the header of a packet of inputs with stamps: the result is an error, or inputs
// and stamps of ticks that the server keeps, but no panic and no hang.
func FuzzStampedInputs(f *testing.F) {
	newStampedWire(f, func(body []byte) { f.Add(body) })
	f.Fuzz(func(t *testing.T, body []byte) {
		x := newStampedWire(t, nil)
		before := bytes.Clone(body)
		for ahead := range int32(3) {
			h, s := wire.MessageHeader{Kind: wire.KindInputs, Long: true, Stamped: true}, x.client.session.Up
			h.Time, h.Epoch = x.client.clock.Now+uint32(ahead), s.Epoch
			packet := make([]byte, s.Size()+h.Size(), s.Size()+h.Size()+len(body))
			h.Put(packet[s.Size():])
			packet = append(packet, body...)
			s.Write(packet, 0, h.Time)
			require.NotErrorIs(t, x.peer.Receive(packet), wire.ErrChecksum)
			x.apply()
			now := delta.Tick(x.server.Tick())
			inputs := &seam.OfPeer(x.peer).Messages.Inputs
			for tick := now - 2*wire.InputTicks; tick != now+2*wire.InputTicks; tick++ {
				if in, ok := inputs.Stamp(tick); ok {
					far := int32(tick - in.Shown.Tick)
					require.True(t, far <= 1<<20 && far >= -1<<20, "%d ticks", far)
				}
			}
		}
		require.Equal(t, before, body, "packets are only read")
		x.goesOn()
	})
}

// TestDamagedMessagePackets gives both ends genuine packets that are damaged but have a correct
// checksum.
func TestDamagedMessagePackets(t *testing.T) {
	t.Parallel()
	packets := 200_000
	if testing.Short() {
		packets = 20_000
	}
	seed := seedOf(t)
	rng := rand.New(rand.NewPCG(seed, 1))
	type genuine struct {
		kind wire.PacketKind
		down bool
		body []byte
	}
	var all []genuine
	collect := func(p []byte, down bool) {
		if kind, body := randomMessagesBody(p, down); body != nil {
			all = append(all, genuine{kind, down, bytes.Clone(body)})
		}
	}
	x := newMessageWire(t, collect)
	require.Greater(t, len(all), 20)
	accepted, refused := 0, 0
	for i := range packets {
		g := all[rng.IntN(len(all))]
		body := bytes.Clone(g.body)
		for range 1 + rng.IntN(3) {
			switch bit := rng.IntN(len(body) * 8); rng.IntN(4) {
			case 0:
				body = body[:1+rng.IntN(len(body))]
			case 1:
				body = append(body, byte(rng.Uint32()))
			default:
				body[bit/8] ^= 1 << (bit % 8)
			}
		}
		packet := x.forgeMessages(g.kind, g.down, rng.Int32N(20)-10, body)
		var err error
		if g.down {
			err = x.client.Receive(packet)
		} else {
			err = x.peer.Receive(packet)
		}
		if err == nil {
			accepted++
		} else {
			refused++
			require.NotErrorIs(t, err, wire.ErrChecksum)
		}
		if i%50 == 0 {
			_ = SendToClient(x.peer, mHit{})
			_ = SendToServer(x.client, mHit{})
			x.round()
		}
		if i%5000 == 0 { // a new session repairs what the forgeries broke
			x = newMessageWire(t, nil)
		}
	}
	x.goesOn()
	t.Logf("%d accepted, %d refused", accepted, refused)
	require.Greater(t, accepted, packets/200)
	require.Greater(t, refused, packets/10)
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

// TestAFloodIsBounded: packets beyond the number that an honest client sends in a tick are refused.
func TestAFloodIsBounded(t *testing.T) {
	x := newMessageWire(t, nil)
	x.replicate()
	handled := 0
	OnClientMessage(x.server, func(*Peer, mFlash) { handled++ })
	packet := func(i int, messages int) []byte {
		w := bitbuf.NewWriter(make([]byte, 1000))
		w.WriteExpGolomb(uint64(i%message.MaxMessagePackets), 0)
		w.WriteBits(0, 2)
		for range messages {
			w.WriteBits(1|3<<1, 4)
		}
		w.WriteBool(false)
		return x.forgeMessages(wire.KindMessages, false, int32(1+i/message.MaxMessagePackets), bytes.Clone(w.Bytes()))
	}
	flood := func(messages int) (taken, refused int) {
		for i := range 1000 {
			switch err := x.peer.Receive(packet(i, messages)); err {
			case nil:
				taken++
			case message.ErrFlood:
				refused++
			default:
				require.NoError(t, err)
			}
		}
		return taken, refused
	}
	taken, refused := flood(1)
	require.Equal(t, message.MaxPacketsPerTick, taken)
	require.Equal(t, 1000-message.MaxPacketsPerTick, refused)
	require.Equal(t, message.MaxPacketsPerTick, handled)
	x.client.clock.Now += 1000
	x.server.Replicate()
	handled = 0
	_, _ = flood(message.MaxPacketMessages)
	require.Equal(t, message.MaxMessagesPerTick, handled)
	require.EqualValues(t, 1000-message.MaxPacketsPerTick+1000-message.MaxMessagesPerTick/message.MaxPacketMessages, x.peer.Stats().Floods)

	// Inputs count as well.
	x.client.clock.Now += 1000
	x.server.Replicate()
	in := x.forgeMessages(wire.KindInputs, false, 0, make([]byte, 7))
	for i := range 1000 {
		if err := x.peer.Receive(in); i < message.MaxPacketsPerTick {
			require.NotErrorIs(t, err, message.ErrFlood)
		} else {
			require.ErrorIs(t, err, message.ErrFlood)
		}
	}
}

// TestHostileMessagesTakeLittleMemory: messages far ahead of the next id, of the largest size, and
// inputs for all ticks.
func TestHostileMessagesTakeLittleMemory(t *testing.T) {
	if raceDetector {
		t.Skip("the race detector takes memory of its own")
	}
	x := connectedWire(t, messageSchema(), WithMTU(2000))
	x.replicate()
	before := heapInUse()
	buf := make([]byte, 2000)
	for round := range 20 {
		for i := range wire.MaxQueued - 1 {
			w := bitbuf.NewWriter(buf)
			w.WriteExpGolomb(uint64(i%message.MaxMessagePackets), 0)
			w.WriteBits(0, 2)
			w.WriteBits(1|4<<1, 4)
			w.WriteBits(uint64(i+1), 16)
			w.WriteBool(false) // not fragmented
			for range 150 {
				w.WriteBits(^uint64(0), 64)
			}
			w.WriteBool(false)
			require.NoError(t, x.peer.Receive(x.forgeMessages(wire.KindMessages, false, int32(1+(round*wire.MaxQueued+i)/message.MaxMessagePackets), w.Bytes())))
			if i%200 == 0 {
				x.replicate()
			}
		}
	}
	require.LessOrEqual(t, x.peer.messages.In[wire.ChannelState].Size, message.MaxQueuedBytes)
	require.Less(t, heapInUse()-before, int64(400<<10))
	runtime.KeepAlive(x)
}

// TestPacketsOfMessagesRoundTrip writes packets of random messages and reads them.
func TestPacketsOfMessagesRoundTrip(t *testing.T) {
	t.Parallel()
	oneGoroutine(t)
	seed := seedOf(t)
	rng := rand.New(rand.NewPCG(seed, 1))
	s := messageSchema()
	s.raw.Freeze()
	for range ticksOf(3000, 1500) {
		down := rng.IntN(2) == 0
		mtu := 64 + rng.IntN(1000)
		var from, to message.Messenger
		from.Init(&s.raw, nil, mtu, down, 0)
		to.Init(&s.raw, nil, mtu, !down, 1<<20)
		key := wire.Key{Key: rng.Uint32(), Off: rng.IntN(2) == 0}
		time := rng.Uint32()
		long := rng.IntN(2) == 0
		from.Writer.Begin(key, time, long)
		k := &from.Writer
		k.Index = rng.IntN(message.MaxMessagePackets)
		k.Start()
		if down {
			(&wire.InputReport{}).Write(&k.W, true)
		}
		for range 2 {
			(&wire.ChannelAck{}).Write(&k.W)
			if down {
				break
			}
		}
		var in [wire.Channels]message.InChannel
		var ids [wire.Channels]uint32
		for i := range in {
			in[i].Next = rng.Uint32()
			ids[i] = in[i].Next
		}
		var sent []message.WireMessage
		var deps []wire.Dependency
		for range rng.IntN(20) {
			number := rng.IntN(len(s.raw.Messages))
			typ := &s.raw.Messages[number]
			m := message.WireMessage{Number: number, Channel: -1, Long: typ.Long, Waits: typ.Waits(), Tick: delta.Tick(time)}
			if typ.Reliable {
				m.Channel = typ.Channel(down)
				ids[m.Channel] += uint32(rng.IntN(10))
				m.ID = ids[m.Channel]
				ids[m.Channel]++
				if typ.Long {
					m.Fragment = wire.Fragment(rng.IntN(3))
				}
				if down && m.Fragment != wire.MoreFragments {
					m.Tick -= delta.Tick(rng.IntN(300))
				}
			}
			if rng.IntN(2) == 0 {
				deps = nil
				slot := uint32(0)
				for range rng.IntN(4) {
					slot += uint32(rng.IntN(100))
					deps = append(deps, wire.Dependency{Slot: slot, Tick: delta.Tick(time) - delta.Tick(rng.IntN(100))})
					slot++
				}
			}
			if m.Waits && down && m.Fragment != wire.MoreFragments {
				m.Deps = deps
			}
			m.Bits = typ.Layout.Width()
			w := bitbuf.NewWriter(make([]byte, wire.ByteSize(m.Bits)))
			row := make([]uint32, typ.Words)
			typ.ReadColumn(row, from.Values[number].Address, 1)
			if rng.IntN(2) == 0 && len(row) > 0 {
				row[0] = uint32(rng.IntN(100))
			}
			from.Packed.EncodeRow(&w, number, row, nil, nil, 0)
			m.Data = bytes.Clone(w.Bytes())
			if m.Fragment != wire.Unfragmented {
				m.Data = m.Data[:1+rng.IntN(len(m.Data))]
				m.Bits = 8 * len(m.Data)
			}
			if k.Put(&m) {
				sent = append(sent, m)
			} else if m.Channel >= 0 {
				ids[m.Channel]--
			}
		}
		packet := k.Finish()
		require.LessOrEqual(t, len(packet), mtu)
		var h wire.MessageHeader
		rest, ok := h.Parse(key.Body(packet), time+uint32(rng.IntN(1<<15))-1<<14)
		require.True(t, ok && key.Matches(packet, 0, h.Time))
		require.Equal(t, wire.MessageHeader{Kind: wire.KindMessages, Time: time, Long: long, Epoch: key.Epoch}, h)
		to.Parser.Header = h
		require.NoError(t, to.Parser.Parse(rest, &in))
		require.Len(t, to.Parser.Messages, len(sent))
		for i, m := range to.Parser.Messages {
			w := sent[i]
			require.Equal(t, w.Number, m.Number)
			require.Equal(t, w.Channel, m.Channel)
			require.Equal(t, w.ID, m.ID)
			require.Equal(t, w.Fragment, m.Fragment)
			require.Equal(t, w.Tick, m.Tick)
			require.Equal(t, w.Bits, m.Bits)
			require.Equal(t, append([]wire.Dependency{}, w.Deps...), append([]wire.Dependency{}, to.Parser.Deps[m.First:][:m.Deps]...))
			var kept message.InMessage
			kept.Fill(&m, nil, 0)
			require.Equal(t, string(w.Data), string(kept.Data))
		}
	}
}

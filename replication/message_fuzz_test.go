package replication

import (
	"bytes"
	"math/rand/v2"
	"testing"

	"github.com/arche-replicate/arche-replicate/bitbuf"
	"github.com/arche-replicate/arche-replicate/delta"
	"github.com/arche-replicate/arche-replicate/replication/internal/message"
	"github.com/arche-replicate/arche-replicate/replication/internal/seam"
	"github.com/arche-replicate/arche-replicate/replication/internal/wire"
	"github.com/mlange-42/arche/ecs"
	"github.com/stretchr/testify/require"
)

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

// FuzzMessagePacket puts any bits behind the header of a packet of messages or inputs with a
// correct checksum: the result is an error or messages that the game has to judge, but no panic and
// no hang.
func FuzzMessagePacket(f *testing.F) {
	newMessageWire(f, func(p []byte, down bool) {
		if kind, body := randomMessagesBody(p, down); body != nil {
			f.Add(body, down, kind == wire.KindInputs)
		}
	})
	for _, misses := range []uint32{1, 1 << 31, 1<<32 - 1} {
		w := bitbuf.NewWriter(make([]byte, 64))
		w.WriteExpGolomb(0, 0) // index
		(&wire.InputReport{Present: true, Echo: 3, Late: 1, Misses: misses}).Write(&w, true)
		w.WriteBits(0, 2) // neither acks nor messages
		f.Add(w.Bytes(), true, false)
	}
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
			at := wire.Stamp{Tick: x.client.Tick() - 3, Part: uint8(i % 8 * 8), Precision: 3, Valid: true}
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
	_, ok := inputs.NewestStamp(x.server.Tick())
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
			now := x.server.Tick()
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
		from.Init(&s.raw, nil, down, 0)
		to.Init(&s.raw, nil, !down, 1<<20)
		key := wire.Key{Key: rng.Uint32(), Off: rng.IntN(2) == 0}
		time := rng.Uint32()
		long := rng.IntN(2) == 0
		from.Writer.Begin(key, time, long, mtu)
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

package replication

import (
	"bytes"
	"encoding/binary"
	"errors"
	"math/rand/v2"
	"strings"
	"testing"
	"unicode/utf8"

	"github.com/arche-replicate/arche-replicate/replication/internal/schema"
	"github.com/arche-replicate/arche-replicate/replication/internal/wire"
	"github.com/mlange-42/arche/ecs"
	"github.com/stretchr/testify/require"
)

// fuzzWire is a session in which the client holds entities of all kinds, moving and idle, and both
// ends have baselines.
func fuzzWire(t testing.TB, packets func(p []byte), opts ...ServerOption) *fixture {
	x := newWire(t, testSchema(), append(opts, WithMTU(300))...)
	position, rotation := ecs.ComponentID[tPosition](x.world), ecs.ComponentID[tRotation](x.world)
	health, exact := ecs.ComponentID[tHealth](x.world), ecs.ComponentID[tExact](x.world)
	frozen, bulk := ecs.ComponentID[tFrozen](x.world), ecs.ComponentID[tBulk](x.world)
	e := []ecs.Entity{
		x.spawn(position, rotation), x.spawn(position, exact), x.spawn(health, frozen), x.spawn(), x.spawn(bulk, position),
	}
	for i := range 12 {
		for j, e := range e {
			if x.world.Has(e, position) && (j != 4 || i%4 == 0) {
				(*tPosition)(x.world.Get(e, position)).X += 0.5
			}
		}
		(*tRotation)(x.world.Get(e[0], rotation)).Q = [4]float32{float32(i), 1, 2, 3}
		(*tExact)(x.world.Get(e[1], exact)).B += int32(i)
		if i == 8 {
			x.world.Add(e[2], position)
			x.world.RemoveEntity(x.spawn(health))
		}
		down := x.replicate()
		x.deliver(down...)
		up := x.apply()
		x.answer(up...)
		if packets != nil {
			for _, p := range append(down, up...) {
				packets(p)
			}
		}
		x.deliver(x.takeDown()...)
	}
	return x
}

// FuzzPacket puts any bits behind the header of a state packet with a correct checksum: the result
// is an error or a change of the client's world, but no panic and no hang.
func FuzzPacket(f *testing.F) {
	fuzzWire(f, func(p []byte) {
		if len(p) > 12 {
			f.Add(p[4]>>wire.PadShift&7, p[11:])
		}
	})
	f.Fuzz(func(t *testing.T, pad byte, body []byte) {
		x := fuzzWire(t, nil)
		x.receiveForged(pad, body)
		// The client's acks may now contradict the server, but it goes on.
		x.rounds(3)
	})
}

// receiveForged gives the client state packets with any bits behind the header.
func (x *fixture) receiveForged(pad byte, body []byte) {
	for i := range uint32(3) { // and again, to the state that it left
		h := wire.StateHeader{Sequence: x.client.recv.Window.Newest + 1, Tick: x.client.recv.NearTick + i, Interval: 1}
		packet := make([]byte, wire.ChecksumSize+h.Size(), wire.ChecksumSize+h.Size()+len(body))
		h.Put(packet[wire.ChecksumSize:])
		packet[wire.ChecksumSize] |= pad & 7 << wire.PadShift
		packet = append(packet, body...)
		x.client.session.Down.Write(packet, h.Sequence, h.Tick)
		if err := x.client.Receive(packet); err != nil {
			require.NotErrorIs(x.t, err, wire.ErrChecksum)
			require.NotErrorIs(x.t, err, wire.ErrStale)
		}
		x.apply()
	}
}

// FuzzWithoutChecksum gives any bytes to both ends of a session without checksums.
func FuzzWithoutChecksum(f *testing.F) {
	fuzzWire(f, func(p []byte) { f.Add(p) }, WithoutChecksum())
	f.Fuzz(func(t *testing.T, packet []byte) {
		x := fuzzWire(t, nil, WithoutChecksum())
		before := bytes.Clone(packet)
		for range 2 {
			_ = x.client.Receive(packet)
			_ = x.peer.Receive(packet)
			x.apply()
		}
		require.Equal(t, before, packet, "packets are only read")
		x.rounds(3)
	})
}

// FuzzAck gives the server any bits with a correct checksum. After false acks the client lacks
// something, and converges again.
func FuzzAck(f *testing.F) {
	x := fuzzWire(f, nil)
	for _, a := range hostileAcks(x.peer.acked.Log.Next, 5) {
		p := forgeAck(x.client, &a)
		f.Add(p[wire.ChecksumSize:])
	}
	f.Fuzz(func(t *testing.T, body []byte) {
		x := fuzzWire(t, nil)
		x.replicate()
		x.replicate()
		packet := append(make([]byte, wire.ChecksumSize), body...)
		x.client.session.Up.Write(packet, 0, 0)
		for range 2 {
			_ = x.peer.Receive(packet)
		}
		x.rounds(3)
	})
}

// FuzzDisconnect gives both ends any body with the session's checksum: the session ends if and only
// if the body is a disconnect of this session.
func FuzzDisconnect(f *testing.F) {
	const at = wire.ChecksumSize
	id := fuzzWire(f, nil).client.session.ID
	f.Add(wire.DisconnectPacket(uint8(ReasonKicked), "why", id, wire.Key{}, 1200)[at:])
	f.Add(wire.DisconnectPacket(uint8(ReasonGame), strings.Repeat("€", 42), id, wire.Key{}, 1200)[at:])
	f.Add(wire.DisconnectPacket(0, "", id+1, wire.Key{}, 1200)[at:])
	f.Fuzz(func(t *testing.T, body []byte) {
		x := fuzzWire(t, nil)
		valid := len(body) >= wire.DisconnectHead && len(body) <= wire.DisconnectHead+wire.MaxReasonText && body[0] == byte(wire.KindDisconnect) &&
			binary.LittleEndian.Uint64(body[2:]) == x.client.session.ID && utf8.Valid(body[wire.DisconnectHead:])
		packet := append(make([]byte, at), body...)
		x.client.session.Up.Write(packet, 0, 0)
		_ = x.peer.Receive(packet)
		require.Equal(t, valid, x.peer.Err() != nil)
		x.client.session.Down.Write(packet, 0, 0)
		_ = x.client.Receive(packet)
		if err := x.client.Apply(); valid && body[1] != byte(ReasonTimeout) {
			require.Equal(t, Reason{ReasonCode(body[1]), string(body[wire.DisconnectHead:])}, requireDisconnected(t, err).Reason)
			require.Equal(t, x.client.session.Err.(*DisconnectError).Reason, requireDisconnected(t, x.peer.Err()).Reason)
		} else {
			require.NoError(t, err)
			require.Equal(t, valid, x.client.Status() == StatusReconnecting)
		}
	})
}

// FuzzHandshake gives both ends any body with the handshake checksum, before, during and after
// their own handshake.
func FuzzHandshake(f *testing.F) {
	h := wire.Hello{Version: wire.ProtocolVersion, Fingerprint: testSchema().Fingerprint(), Nonce: 7}
	f.Add(h.Append(nil), byte(0))
	h.Version++
	f.Add(h.Append(nil), byte(1))
	h.Version, h.Data = wire.ProtocolVersion, []byte("no, and the reason is long enough")
	f.Add(h.Append(nil), byte(1))
	f.Add(wire.DisconnectPacket(uint8(ReasonRefused), "no", 7, wire.Key{}, 1200)[wire.ChecksumSize:], byte(2))
	w := wire.Welcome{Version: wire.ProtocolVersion, Window: 64, Nonce: 7, Session: 1, Tick: 5, Sequence: 6, TickRate: 60}
	f.Add(w.Append(nil), byte(2))
	r := wire.Refuse{Version: wire.ProtocolVersion, Nonce: 7, Total: 1 << 31, Text: []byte(schema.TextHeader + "\ncomponent tPosition\ntPos")}
	f.Add(r.Append(nil), byte(3))
	r.Text = nil
	f.Add(r.Append(nil), byte(2))
	f.Fuzz(func(t *testing.T, body []byte, when byte) {
		x := newWire(t, testSchema())
		x.spawn(ecs.ComponentID[tPosition](x.world))
		asked := 0
		x.server.OnJoin(func(_ *Peer, data []byte) error {
			asked++
			require.LessOrEqual(t, len(data), wire.MaxJoinData)
			if strings.HasPrefix(string(data), "no") {
				return errors.New(string(data))
			}
			return nil
		})
		packet := wire.WithChecksum(body)
		var failed error
		receive := func() {
			_ = x.client.Receive(packet)
			_ = x.peer.Receive(packet)
			for _, p := range x.takeDown() {
				require.LessOrEqual(t, len(p), 1200)
				if answer := wire.OpenHandshake(p); answer != nil {
					require.LessOrEqual(t, len(p), wire.MaxAmplification*len(packet))
					if wire.PacketKind(answer[0]) == wire.KindDisconnect {
						require.LessOrEqual(t, len(p), len(packet))
					}
				}
			}
		}
		for i := range byte(4) {
			if when>>i&1 != 0 {
				receive()
			}
			x.deliver(x.replicate()...)
			if err := x.client.Apply(); err != nil {
				failed = err
			}
			for _, p := range x.up {
				require.LessOrEqual(t, len(p), wire.MinMTU)
			}
			x.answer(x.up...)
			x.up = nil
			x.deliver(x.takeDown()...)
		}
		require.LessOrEqual(t, asked, 5, "once per tick")
		if failed != nil {
			require.NotEmpty(t, failed.Error())
			require.Equal(t, failed, x.client.Apply(), "final")
		}
	})
}

// FuzzScript plays a game and a network by script: every byte is an event. Whatever happens, the
// client shows states that existed, and converges at the end.
func FuzzScript(f *testing.F) {
	f.Add([]byte{0, 1, 2, 64, 128, 129, 200, 201, 255})
	f.Add([]byte("spawn, move, lose, despawn and spawn again"))
	f.Add(bytes.Repeat([]byte{0x00, 0x40, 0x41, 0x80, 0xa0, 0xc0, 0x20, 0xe0}, 20))
	f.Add(bytes.Repeat([]byte{0x07, 0x45, 0x61, 0x80, 0xb0, 0xa1, 0xc1, 0x23, 0xe1, 0x9f}, 30))
	f.Fuzz(func(t *testing.T, script []byte) {
		playScript(t, script[:min(len(script), 2000)], Packed)
		playScript(t, script[:min(len(script), 2000)], Compact)
	})
}

func playScript(t *testing.T, script []byte, coding Coding) {
	x := newWire(t, testSchema(), WithMTU(200), WithWindow(8), withCoding(coding))
	x.restart(faceOf(x.server.schema), 7, WithTimeout(ofTicks(40)))
	g := newGame(1, x.world, faceOf(x.server.schema), 0)
	o := newTruth()
	watcher := &end{world: x.mirror, client: x.client, last: map[NetID]uint32{}}
	tick := func() {
		x.server.Replicate()
		o.record(x.server)
		if x.peer.Err() != nil { // the script paused for so long that the server gave the client up
			x.connect()
		}
	}
	take := func(packets *[][]byte, i int) []byte {
		if len(*packets) == 0 {
			return nil
		}
		i %= len(*packets)
		p := (*packets)[i]
		*packets = append((*packets)[:i], (*packets)[i+1:]...)
		return p
	}
	apply := func() {
		require.NoError(t, x.client.Apply())
		watcher.check(t, x.server, o)
	}
	for _, op := range script {
		n := int(op & 31)
		switch op >> 5 {
		case 0: // spawn with some components
			if len(g.entities) < 12 {
				var ids []ecs.ID
				for i := range 5 {
					if n>>i&1 != 0 {
						ids = append(ids, g.ids[i])
					}
				}
				if n == 21 {
					ids = append(ids, g.ids[5])
				}
				g.spawn(ids...)
			}
		case 1: // despawn, or another component set
			if len(g.entities) == 0 {
				break
			}
			e := g.entities[n%len(g.entities)]
			if n >= 24 {
				g.despawn(n % len(g.entities))
			} else if id := g.ids[n%5]; x.world.Has(e, id) {
				x.world.Remove(e, id)
			} else {
				x.world.Add(e, id)
			}
		case 2: // change
			for i, e := range g.entities {
				if n>>(i%5)&1 != 0 {
					g.mutate(e)
				}
			}
		case 3: // tick
			ticks := 1 + n/8
			if n == 31 { // everything is idle until the low bits of ticks wrap
				ticks = 270
			}
			for range ticks {
				tick()
			}
		case 4: // a packet down arrives
			if p := take(&x.down, n); p != nil {
				_ = x.client.Receive(p)
			}
		case 5: // all arrive: some twice, some not, some later
			packets := x.takeDown()
			for i, p := range packets {
				switch (n + i) % 8 {
				case 0:
				case 1:
					_ = x.client.Receive(p)
					x.down = append(x.down, p)
				case 2:
					x.down = append(x.down, p)
				default:
					_ = x.client.Receive(p)
				}
			}
		case 6: // the client's frame
			switch n {
			case 28:
				x.client.Reconnect()
			case 29: // the server drops the client, and receives from it again
				x.peer.Disconnect(Reason{Code: ReasonTimeout})
				x.connect()
			case 30:
				x.mirror.Reset()
			}
			apply()
			if n&1 != 0 {
				x.up = nil
			}
		default: // a packet up arrives, or is lost
			if p := take(&x.up, n); p != nil && n < 24 {
				_ = x.peer.Receive(p)
				if n < 4 {
					x.up = append(x.up, p)
				}
			}
		}
		if len(x.down) > 200 {
			x.down = x.down[100:]
		}
		if len(x.up) > 50 {
			x.up = x.up[25:]
		}
	}
	for n := 0; n < 90 || watcher.equalTo(x.server, o) != ""; n++ {
		tick()
		x.deliver(x.takeDown()...)
		apply()
		x.answer(x.up...)
		x.up = nil
		x.deliver(x.takeDown()...)
		// A script with long pauses makes the server measure long round trips, and mark packets
		// lost late.
		require.Less(t, n, 400, "%s\n%+v\n%+v", watcher.equalTo(x.server, o), x.peer.Stats(), x.client.Stats())
	}
}

// TestRandomScripts plays random scripts, as fuzzing does.
func TestRandomScripts(t *testing.T) {
	t.Parallel()
	oneGoroutine(t)
	scripts := 60
	if testing.Short() {
		scripts = 12
	}
	seed := seedOf(t)
	rng := rand.New(rand.NewPCG(seed, 4))
	for range scripts {
		script := make([]byte, 100+rng.IntN(900))
		weights := [8]int{}
		for i := range weights {
			weights[i] = 1 + rng.IntN(10)
		}
		for i := range script {
			op := rng.IntN(8)
			for rng.IntN(10) >= weights[op] {
				op = rng.IntN(8)
			}
			script[i] = byte(op<<5 | rng.IntN(32))
		}
		playScript(t, script, Coding(rng.IntN(2)))
	}
}

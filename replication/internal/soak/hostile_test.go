package soak

import (
	"encoding/binary"
	"hash/crc32"
	"runtime"
	"testing"

	"github.com/mlange-42/arche/ecs"
	"github.com/stretchr/testify/require"

	"github.com/arche-replicate/arche-replicate/replication"
	"github.com/arche-replicate/arche-replicate/replication/netsim"
)

// A hostile server knows the wire format, the schema and the packets of an honest server, and
// computes correct checksums for whatever it sends. Its packets are built by hand, from
// docs/wire-format.md alone.
type hostile struct {
	g           *chance
	fingerprint uint64
	genuine     [][]byte // bodies of an honest server's packets, in their order, with long headers
	next        int      // index of the next one

	nonce, session uint64
	compact        bool
	sequence, tick uint32
	began          uint32 // the tick in the welcome
	welcomed       bool
}

// Bits of the first byte of state and message packets, and of the flags of a welcome.
const (
	longBit      = 1 << 6 // of messages
	shortBit     = 1 << 7 // of state
	impliedBit   = 1 << 6 // of state with shortBit
	completeBit  = 1 << 6 // of other state
	flagCompact  = 1 << 1
	handshakeKey = 0x61726368
)

var castagnoli = crc32.MakeTable(crc32.Castagnoli)

// withChecksum prepends the correct checksum to a body.
func withChecksum(key uint32, body []byte) []byte {
	return append(binary.LittleEndian.AppendUint32(nil, crc32.Update(key, castagnoli, body)), body...)
}

// checksumKey returns the key for the session's packets to the client.
func (x *hostile) checksumKey() uint32 {
	b := binary.LittleEndian.AppendUint64(nil, x.fingerprint)
	b = binary.LittleEndian.AppendUint64(b, x.session)
	return crc32.Checksum(append(b, 0), castagnoli)
}

// received gets the client's packets, and keeps the nonce of a hello.
func (x *hostile) received(packet []byte) error {
	if len(packet) == 64 && packet[4] == kindHello {
		if nonce := binary.LittleEndian.Uint64(packet[14:]); nonce != x.nonce {
			x.nonce, x.welcomed = nonce, false
		}
	}
	return nil
}

// welcome answers a hello.
func (x *hostile) welcome() []byte {
	g := x.g
	if x.welcomed { // a second welcome is ignored
		return withChecksum(handshakeKey, append([]byte{kindWelcome, replication.ProtocolVersion}, x.noise(60)...))
	}
	x.session, x.sequence, x.tick, x.next = 8+g.Uint64()>>1, g.Uint32(), g.Uint32(), 0
	x.began = x.tick
	flags := byte(0)
	if x.compact {
		flags = flagCompact
	}
	body := []byte{kindWelcome, replication.ProtocolVersion, flags, byte(8 + g.IntN(113))}
	for _, v := range []uint64{x.nonce, x.session} {
		body = binary.LittleEndian.AppendUint64(body, v)
	}
	body = binary.LittleEndian.AppendUint32(body, x.tick)
	body = binary.LittleEndian.AppendUint32(body, x.sequence)
	body = binary.LittleEndian.AppendUint64(body, g.Uint64N(3))
	body = binary.LittleEndian.AppendUint16(body, uint16(1+g.IntN(1000)))
	return withChecksum(handshakeKey, x.spoilt(body, 30))
}

// spoilt damages one body in so many.
func (x *hostile) spoilt(body []byte, in int) []byte {
	g := x.g
	if !g.one(in) || len(body) == 0 {
		return body
	}
	switch g.IntN(5) {
	case 0:
		return body[:g.IntN(len(body))]
	case 1:
		for range 1 + g.IntN(12) {
			body = append(body, byte(g.Uint32()))
		}
	case 2: // the end of another packet
		if len(x.genuine) > 0 {
			other, at := pick(g, x.genuine...), g.IntN(len(body))
			body = append(body[:at:at], other[min(at, len(other)):]...)
		}
	case 3:
		at := g.IntN(len(body))
		b := pick[byte](g, 0, 0xff, byte(g.Uint32()))
		for i := at; i < min(len(body), at+1+g.IntN(16)); i++ {
			body[i] = b
		}
	default:
		for range 1 + g.IntN(6) {
			body[g.IntN(len(body))] ^= 1 << g.IntN(8)
		}
	}
	return body
}

// packet returns the next packet for the client.
func (x *hostile) packet() []byte {
	g := x.g
	switch n := g.IntN(100); {
	case !x.welcomed && n < 60 || n == 0 && g.one(4):
		return x.welcome()
	case n == 1:
		return x.refuse()
	case n == 2 && g.one(4):
		body := binary.LittleEndian.AppendUint64([]byte{kindDisconnect, byte(pick(g, 0, 1, 2, 64, 255))}, x.session)
		return withChecksum(x.checksumKey(), x.spoilt(append(body, pick(g, words...)...), 3))
	case n < 10:
		body := append(binary.LittleEndian.AppendUint32([]byte{kindHashes}, x.tick-uint32(g.IntN(3))), x.noise(60)...)
		return withChecksum(x.checksumKey(), body)
	case n < 20:
		return x.messagePacket(x.spoilt(x.noise(80), 2))
	case n < 30:
		return x.state(0, x.tick+uint32(g.IntN(2)), x.invented(), false)
	}
	return x.again()
}

func (x *hostile) refuse() []byte {
	body := binary.LittleEndian.AppendUint64([]byte{kindRefuse, byte(x.g.IntN(3))}, x.nonce)
	body = binary.LittleEndian.AppendUint32(body, pick(x.g, 0, x.g.Uint32()))
	body = binary.LittleEndian.AppendUint32(body, pick(x.g, 0, 1<<20, x.g.Uint32()))
	return withChecksum(handshakeKey, append(body, x.noise(100)...))
}

// again returns a packet of the honest server under a header that the client accepts: unchanged and
// in order, or damaged.
func (x *hostile) again() []byte {
	if x.next >= len(x.genuine) {
		return x.noise(50)
	}
	body, as, honest := x.genuine[x.next], x.spoilt, !x.g.one(3)
	if honest {
		x.next++
		as = func(body []byte, _ int) []byte { return body }
	}
	switch body[0] & 7 {
	case kindState:
		tick := tickOf(body) - tickOf(x.genuine[0])
		return x.state(body[0], x.began+tick, as(append([]byte(nil), body[longHeader:]...), 1), honest)
	case kindMessages:
		head := 3
		if body[0]&longBit != 0 {
			head = 5
		}
		return x.messagePacket(as(append([]byte(nil), body[head:]...), 1))
	}
	return withChecksum(x.checksumKey(), as(append([]byte(nil), body...), 1))
}

// longHeader is the size of a long header of a state packet, with the first byte.
const longHeader = 10

// tickOf returns the tick of a state packet with a long header.
func tickOf(body []byte) uint32 { return binary.LittleEndian.Uint32(body[5:]) }

// A completer makes the headers of state packets long. It gets all packets, in their order.
type completer struct {
	sequence, tick uint32
	interval       uint8
}

func (x *completer) long(body []byte, wide bool) []byte {
	if body[0]&shortBit == 0 {
		x.sequence, x.tick, x.interval = binary.LittleEndian.Uint32(body[1:]), tickOf(body), body[9]
		return body
	}
	first, implied, size := body[0]&(1<<6-1)|completeBit, body[0]&impliedBit != 0, uint(1)
	if wide {
		size = 2
	}
	body = body[1:]
	steps := func(last uint32) (steps uint32) { // from the last number to the one that comes next in the body
		for i := range size {
			steps |= uint32(body[i]) << (8 * i)
		}
		body = body[size:]
		return (steps - last) & (1<<(8*size) - 1)
	}
	n := steps(x.sequence)
	if x.sequence += n; implied {
		x.tick += n * uint32(x.interval)
	} else {
		x.tick += steps(x.tick)
	}
	long := binary.LittleEndian.AppendUint32([]byte{first}, x.sequence)
	return append(append(binary.LittleEndian.AppendUint32(long, x.tick), x.interval), body...)
}

// state returns a state packet with a long header.
func (x *hostile) state(first byte, tick uint32, rest []byte, honest bool) []byte {
	g := x.g
	x.sequence++
	x.tick = tick
	sequence := x.sequence
	if !honest && g.one(10) {
		sequence, tick = sequence-uint32(g.IntN(40)), tick+pick(g, 100, 1<<31, g.Uint32())
	}
	body := []byte{first&(1<<6-1) | kindState}
	if g.one(20) {
		body[0] |= completeBit
	}
	if !honest && g.one(10) {
		body[0] ^= byte(g.IntN(8)) << 3
	}
	body = binary.LittleEndian.AppendUint32(body, sequence)
	interval := byte(1 + g.IntN(60))
	if !honest && g.one(10) {
		interval = byte(g.Uint32())
	}
	body = append(binary.LittleEndian.AppendUint32(body, tick), interval)
	return withChecksum(x.checksumKey()^(sequence*0x9E3779B1+tick*0x85EBCA6B), append(body, rest...))
}

// messagePacket returns a packet of messages with a long time.
func (x *hostile) messagePacket(rest []byte) []byte {
	body := binary.LittleEndian.AppendUint32([]byte{kindMessages | longBit}, x.tick)
	return withChecksum(x.checksumKey()^x.tick*0x85EBCA6B, append(body, rest...))
}

// noise returns up to n bytes, mostly zeros or ones, which make long codes.
func (x *hostile) noise(n int) []byte {
	b := make([]byte, x.g.IntN(n))
	rate := x.g.IntN(9)
	for i := range b {
		for bit := range 8 {
			if x.g.IntN(8) < rate {
				b[i] |= 1 << bit
			}
		}
	}
	return b
}

// invented returns the bits of entries that begin correctly.
func (x *hostile) invented() []byte {
	g := x.g
	var b bits
	b.put(uint64(g.IntN(16)), 4) // the order of gaps
	for range 1 + g.IntN(40) {
		b.put(1, 1) // a quotient of zero
		b.put(g.Uint64(), g.IntN(6))
		switch kind := g.IntN(6); kind {
		case 5: // a part: age, total, size, index
			b.put(0, 5)
			for range 4 {
				b.golomb(g.Uint64()>>(48+g.IntN(16)), 3)
			}
		case 2:
			b.put(1<<2, 3)
			b.golomb(uint64(g.IntN(20)), 4) // the generation
			n := g.IntN(6)                  // the set
			b.golomb(uint64(n), 0)
			for range n {
				b.golomb(uint64(g.IntN(3)), 0)
			}
		default:
			b.put(1<<kind, kind+1)
		}
		for range g.IntN(20) {
			b.put(g.Uint64(), g.IntN(20))
		}
	}
	return b.bytes
}

// honest returns the bodies that an honest server sent to its first client.
func honest(t *testing.T, seed uint64) (*episode, [][]byte) {
	ep := newEpisode(t, seed)
	ep.hosts = ep.hosts[:1]
	c := ep.hosts[0].conns[0]
	ep.hosts[0].conns, ep.conns = ep.hosts[0].conns[:1], ep.conns[:1]
	var bodies [][]byte
	var all completer
	c.spoil = false
	c.link.SetConfig(netsim.Config{})
	c.tap = func(packet []byte) {
		if len(packet) == 4+38 && packet[4] == kindWelcome {
			return
		}
		if c.sums {
			packet = packet[4:]
		}
		kind := packet[0] & 7
		if kind == kindState || kind == kindInputs { // or settled state
			packet = all.long(packet, !c.sums)
		}
		if kind == kindState || len(bodies) > 0 && kind > kindState && len(packet) >= longHeader {
			bodies = append(bodies, append([]byte(nil), packet...))
		}
	}
	for range 60 {
		ep.step()
	}
	return ep, bodies
}

// TestHostileServer: whatever a server sends, the client only returns errors, and shows only values
// that quantisers return.
func TestHostileServer(t *testing.T) {
	seed, packets := *seedFlag, *packetsFlag/4
	if seed == 0 {
		seed = 1
	}
	if packets == 0 {
		packets = 8000
	}
	t.Logf("-soak.seed=%d", seed)
	shown, took, refused := 0, 0, 0
	for done := uint64(0); done < packets; seed++ {
		ep, genuine := honest(t, seed)
		n := hostileSession(t, ep, genuine, &shown, &took, &refused)
		done += n
	}
	t.Logf("%d packets taken, %d refused", took, refused)
	require.Greater(t, took, refused/20, "hardly any packet was taken: what is behind the checks was not reached")
	require.NotZero(t, shown, "no client ever showed anything: the server never got past the checks")
}

// limitOfHostile is the client's entity limit. The documented memory bounds for it are below these.
const (
	limitOfHostile = 64
	memoryOfOne    = 16 << 20 // allocation by one packet: 4 MiB staged, and slices that grow
	memoryOfAll    = 96 << 20
)

func hostileSession(t *testing.T, ep *episode, genuine [][]byte, shown, took, refused *int) uint64 {
	g, h := newChance(ep.seed, 99), ep.hosts[0]
	schema := h.plan.schema(true, nil)
	x := &hostile{g: g, fingerprint: schema.Fingerprint(), genuine: genuine, compact: h.conns[0].peer.Stats().Compact}
	world := ecs.NewWorld()
	client := replication.NewClient(&world, schema, replication.WithMaxEntities(limitOfHostile))
	client.SetSend(x.received)
	c := &conn{ep: ep, host: h, g: g, world: &world, client: client}
	c.ids, c.resIDs = idsOf(&world, h.plan, true)
	for _, p := range h.plan.components {
		c.scratch = append(c.scratch, make([]cell, p.cells))
	}
	if h.plan.notes {
		for _, calls := range noteTypes {
			calls.onClient(client, func(note) {})
		}
	}
	var before, after runtime.MemStats
	runtime.GC()
	runtime.ReadMemStats(&before)
	start := before.HeapAlloc
	const rounds = 2000
	for i := range rounds {
		packet := x.packet()
		runtime.ReadMemStats(&before)
		err := client.Receive(packet)
		c.known(err)
		if err == nil {
			x.welcomed = x.welcomed || packet[4] == kindWelcome
			*took++
		} else {
			*refused++
		}
		runtime.ReadMemStats(&after)
		if n := after.TotalAlloc - before.TotalAlloc; n > memoryOfOne {
			t.Fatalf("-soak.seed=%d: packet %d of %d bytes makes the client allocate %d: %x", ep.seed, i, len(packet), n, packet)
		}
		if i%4 == 0 {
			if client.Frame(tickLength(client)) != nil || x.next >= len(genuine) {
				client.Reconnect()
			}
			c.sane(shown)
		}
	}
	runtime.GC()
	runtime.ReadMemStats(&after)
	if after.HeapAlloc > start+memoryOfAll {
		t.Fatalf("-soak.seed=%d: the client holds %d bytes", ep.seed, after.HeapAlloc-start)
	}
	client.Close()
	return rounds
}

// sane fails if the client's world has something that no server could have sent.
func (c *conn) sane(shown *int) {
	count := 0
	for id, e := range c.client.Entities() {
		count++
		c.read(e)
		for i, p := range c.host.plan.components {
			if p.resource || !c.world.Has(e, c.ids[i]) {
				continue
			}
			for j := range p.client.leaves {
				l := &p.client.leaves[j]
				got := c.scratch[i][l.at : l.at+l.n]
				if l.ref && !got[0].e.IsZero() && !c.world.Alive(got[0].e) || !l.ref && !l.fits(got, got) {
					c.ep.fail("a hostile server makes %v show %s", id, describe(p.name+l.path, got, got))
				}
			}
		}
	}
	*shown += count
	if count > limitOfHostile {
		c.ep.fail("a hostile server makes %d entities, and %d were allowed", count, limitOfHostile)
	}
}

package replication

import (
	"encoding/binary"
	"math/rand/v2"
	"testing"
	"time"

	"github.com/mlange-42/arche/ecs"
	"github.com/stretchr/testify/require"

	"github.com/arche-replicate/arche-replicate/bitbuf"
	"github.com/arche-replicate/arche-replicate/quantize"
)

// The reliable server is the simplest one: it keeps a copy of every entity for every client, sends
// the fields that differ from it and assumes that they arrive. So it does less than the library and
// less than [ackedServer]: no loss, no acknowledgements, no deltas of fields. It shows a lower
// bound, and is no competitor.
//
// A packet is a 16-bit count of entities and the entities, with ascending ids:
//
//	gap to the previous id, less one: 4, or 15 and 32 more | mask 8 | the fields in the mask at fixed width

type naiveEntity struct {
	position scalePosition
	velocity scaleVelocity
	health   scaleHealth
	grounded scaleGrounded
}

const (
	naiveMTU          = 1200
	reliableHeader    = 2
	reliableEscape    = 15
	reliableEntryBits = 4 + 32 + 8 + 3*18 + 3*10 + 7 + 1 // at most
)

// A naiveWorld is what both naive servers know of a world.
type naiveWorld struct {
	world    *ecs.World
	filter   ecs.Mask
	position ecs.ID
	velocity ecs.ID
	health   ecs.ID
	grounded ecs.ID
	codec    naiveCodec
}

type reliableServer struct {
	naiveWorld
	now   []naiveEntity // by id: the position in the world
	peers []*reliablePeer
}

type naiveCodec struct {
	position, velocity quantize.Fixed
	health             quantize.Int[int64]
}

type reliablePeer struct {
	send  func(packet []byte) error
	known []naiveEntity
	buf   [naiveMTU]byte
}

func newNaiveCodec(tb testing.TB) (c naiveCodec) {
	var err error
	c.position, err = quantize.NewFixed32(-1000, 1000, 0.01)
	require.NoError(tb, err)
	c.velocity, err = quantize.NewFixed32(-50, 50, 0.1)
	require.NoError(tb, err)
	c.health, err = quantize.NewInt[int64](0, 100, 1)
	require.NoError(tb, err)
	return c
}

func newNaiveWorld(tb testing.TB, w *ecs.World) naiveWorld {
	s := naiveWorld{
		world: w, codec: newNaiveCodec(tb),
		position: ecs.ComponentID[scalePosition](w), velocity: ecs.ComponentID[scaleVelocity](w),
		health: ecs.ComponentID[scaleHealth](w), grounded: ecs.ComponentID[scaleGrounded](w),
	}
	s.filter = ecs.All(s.position, s.velocity, s.health, s.grounded)
	return s
}

func newReliableServer(tb testing.TB, w *ecs.World) *reliableServer {
	return &reliableServer{naiveWorld: newNaiveWorld(tb, w)}
}

func (s *reliableServer) connect(send func(packet []byte) error) {
	s.peers = append(s.peers, &reliablePeer{send: send})
}

// replicate plays a tick. The world is read once for all peers.
func (s *reliableServer) replicate() {
	s.now = s.now[:0]
	q := s.world.Query(&s.filter)
	for q.Next() {
		s.now = append(s.now, naiveEntity{
			*(*scalePosition)(q.Get(s.position)), *(*scaleVelocity)(q.Get(s.velocity)),
			*(*scaleHealth)(q.Get(s.health)), *(*scaleGrounded)(q.Get(s.grounded)),
		})
	}
	for _, p := range s.peers {
		p.replicate(s.now, &s.codec)
	}
}

func (p *reliablePeer) replicate(now []naiveEntity, codec *naiveCodec) {
	if len(p.known) < len(now) {
		p.known = append(p.known, make([]naiveEntity, len(now)-len(p.known))...)
	}
	known := p.known[:len(now)]
	w := bitbuf.NewWriter(p.buf[reliableHeader:])
	count, last := 0, -1
	for id := range now {
		e, k := &now[id], &known[id]
		mask := e.difference(k)
		if mask == 0 {
			continue
		}
		if w.Remaining() < reliableEntryBits {
			p.flush(&w, count)
			w.Reset(p.buf[reliableHeader:])
			count, last = 0, -1
		}
		if gap := uint64(id - last - 1); gap < reliableEscape {
			w.WriteBits(gap, 4)
		} else {
			w.WriteBits(reliableEscape|gap<<4, 4+32)
		}
		codec.write(&w, e, mask)
		*k = *e
		count, last = count+1, id
	}
	if count > 0 {
		p.flush(&w, count)
	}
}

func (p *reliablePeer) flush(w *bitbuf.Writer, count int) {
	binary.LittleEndian.PutUint16(p.buf[:], uint16(count))
	_ = p.send(p.buf[:reliableHeader+len(w.Bytes())]) // assumed to be reliable
}

// difference returns the mask of the fields that differ.
func (e *naiveEntity) difference(k *naiveEntity) (mask uint64) {
	if e.position.X != k.position.X {
		mask = 1
	}
	if e.position.Y != k.position.Y {
		mask |= 1 << 1
	}
	if e.position.Z != k.position.Z {
		mask |= 1 << 2
	}
	if e.velocity.X != k.velocity.X {
		mask |= 1 << 3
	}
	if e.velocity.Y != k.velocity.Y {
		mask |= 1 << 4
	}
	if e.velocity.Z != k.velocity.Z {
		mask |= 1 << 5
	}
	if e.health.HP != k.health.HP {
		mask |= 1 << 6
	}
	if e.grounded.On != k.grounded.On {
		mask |= 1 << 7
	}
	return mask
}

// write writes a mask and its fields: the position in one word with the mask, everything else in
// another.
func (c *naiveCodec) write(w *bitbuf.Writer, e *naiveEntity, mask uint64) {
	word, n := mask, uint(8)
	if mask&1 != 0 {
		code, _ := c.position.Encode(float64(e.position.X))
		word, n = word|code<<n, n+18
	}
	if mask&(1<<1) != 0 {
		code, _ := c.position.Encode(float64(e.position.Y))
		word, n = word|code<<n, n+18
	}
	if mask&(1<<2) != 0 {
		code, _ := c.position.Encode(float64(e.position.Z))
		word, n = word|code<<n, n+18
	}
	w.WriteBits(word, n)
	if mask>>3 == 0 {
		return
	}
	word, n = 0, 0
	if mask&(1<<3) != 0 {
		word, _ = c.velocity.Encode(float64(e.velocity.X))
		n = 10
	}
	if mask&(1<<4) != 0 {
		code, _ := c.velocity.Encode(float64(e.velocity.Y))
		word, n = word|code<<n, n+10
	}
	if mask&(1<<5) != 0 {
		code, _ := c.velocity.Encode(float64(e.velocity.Z))
		word, n = word|code<<n, n+10
	}
	if mask&(1<<6) != 0 {
		code, _ := c.health.Encode(int64(e.health.HP))
		word, n = word|code<<n, n+7
	}
	if mask&(1<<7) != 0 {
		if e.grounded.On {
			word |= 1 << n
		}
		n++
	}
	w.WriteBits(word, n)
}

// reliableRig runs the reliable server. Its links lose nothing.
type reliableRig struct {
	world  *scaleWorld
	server *reliableServer
	bytes  uint64
}

func newReliableRig(tb testing.TB, load scaleLoad, clients int, seed uint64) *reliableRig {
	r := &reliableRig{world: newScaleWorld(load, seed)}
	r.server = newReliableServer(tb, &r.world.ecs)
	for range clients {
		r.server.connect(func(packet []byte) error {
			r.bytes += uint64(len(packet))
			return nil
		})
	}
	return r
}

func (r *reliableRig) tick() time.Duration {
	r.world.step()
	begin := time.Now()
	r.server.replicate()
	return time.Since(begin)
}

func (r *reliableRig) sent() uint64 { return r.bytes }

// reliableDecode decodes a packet into a client's copy of the codes, field by field.
func reliableDecode(t *testing.T, packet []byte, mirror [][8]uint64) {
	widths := [8]uint{18, 18, 18, 10, 10, 10, 7, 1}
	r := bitbuf.NewReader(packet[reliableHeader:])
	id := -1
	for range binary.LittleEndian.Uint16(packet) {
		gap := r.ReadBits(4)
		if gap == reliableEscape {
			gap = r.ReadBits(32)
		}
		id += int(gap) + 1
		mask := r.ReadBits(8)
		for field, width := range widths {
			if mask>>field&1 != 0 {
				mirror[id][field] = r.ReadBits(width)
			}
		}
	}
	require.NoError(t, r.Finish())
}

// TestReliableServerReplicates: its packets show every client the world of every tick.
func TestReliableServerReplicates(t *testing.T) {
	seed := seedOf(t)
	g := newScaleWorld(scaleLoad{entities: 700, movers: 200, hits: 30}, seed)
	s := newReliableServer(t, &g.ecs)
	zero := naiveCodes(&s.codec, &naiveEntity{})
	mirrors := make([][][8]uint64, 2)
	for i := range mirrors {
		mirrors[i] = make([][8]uint64, len(g.parts))
		for id := range mirrors[i] {
			mirrors[i][id] = zero
		}
		s.connect(func(packet []byte) error {
			require.LessOrEqual(t, len(packet), naiveMTU)
			reliableDecode(t, packet, mirrors[i])
			return nil
		})
	}
	rng := rand.New(rand.NewPCG(seed, 3))
	for range 20 {
		for range 1 + rng.IntN(3) {
			g.step()
		}
		s.replicate()
		for id, p := range g.parts {
			want := naiveCodes(&s.codec, &naiveEntity{*p.position, *p.velocity, *p.health, *p.grounded})
			for i := range mirrors {
				require.Equal(t, want, mirrors[i][id], "client %d, entity %d", i, id)
			}
		}
	}
}

// naiveCodes returns the codes of an entity, field by field.
func naiveCodes(c *naiveCodec, e *naiveEntity) (codes [8]uint64) {
	for i, v := range []float32{e.position.X, e.position.Y, e.position.Z} {
		codes[i], _ = c.position.Encode(float64(v))
	}
	for i, v := range []float32{e.velocity.X, e.velocity.Y, e.velocity.Z} {
		codes[3+i], _ = c.velocity.Encode(float64(v))
	}
	codes[6], _ = c.health.Encode(int64(e.health.HP))
	if e.grounded.On {
		codes[7] = 1
	}
	return codes
}

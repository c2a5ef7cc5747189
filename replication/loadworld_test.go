package replication

import (
	"hash/crc32"
	"testing"

	"github.com/arche-replicate/arche-replicate/replication/internal/baseline"
	"github.com/arche-replicate/arche-replicate/replication/internal/bitset"
	"github.com/arche-replicate/arche-replicate/replication/internal/wire"
	"github.com/mlange-42/arche/ecs"
	"github.com/stretchr/testify/require"
)

// A loadWorld is a world of entities with a position each, its server and fake clients. Every
// packet is counted when the send function gets it.
type loadWorld struct {
	tb        testing.TB
	world     ecs.World
	server    *Server
	position  ecs.ID
	entities  []ecs.Entity
	positions []*tPosition // of the first entities, as long as none is spawned or despawned
	members   []*loadClient
	ticks     int
}

// loadClient is a client of a loadWorld's server.
type loadClient struct {
	*fakeClient
	deaf  bool  // the server gets no acks from it
	sizes []int // bytes by tick
	hash  uint64
}

func loadSchema(opts ...ComponentOption) *Schema {
	s := NewSchema()
	Register[tPosition](s, opts...)
	Register[tHealth](s)
	return s
}

func newLoadWorld(tb testing.TB, entities int, schema *Schema, opts ...ServerOption) *loadWorld {
	c := &loadWorld{tb: tb, world: ecs.NewWorld(), ticks: 16}
	c.position = ecs.ComponentID[tPosition](&c.world)
	c.server = NewServer(&c.world, schema, append([]ServerOption{WithSeed(1)}, opts...)...)
	for range entities {
		c.entities = append(c.entities, c.world.NewEntity(c.position, ReplicatedID(&c.world)))
	}
	for i, e := range c.entities {
		p := (*tPosition)(c.world.Get(e, c.position))
		p.X, p.Y = float32(i%200)-100, float32(i/200%200)-100
		c.positions = append(c.positions, p)
	}
	return c
}

// join connects a fake client whose acks take delay ticks.
func (c *loadWorld) join(delay int, loss float64) *loadClient {
	m := &loadClient{fakeClient: connectFake(c.tb, c.server, uint64(len(c.members))+1, delay, loss)}
	m.peer.out.Send = func(p []byte) error {
		m.hash = m.hash*31 + uint64(crc32.Checksum(p, wire.Castagnoli))
		m.sizes[len(m.sizes)-1] += len(p)
		return m.take(p)
	}
	c.members = append(c.members, m)
	return m
}

// tick plays a tick in which the entities with these numbers move.
func (c *loadWorld) tick(moving ...int) {
	for _, i := range moving {
		c.move(c.positions[i], i)
	}
	c.replicate()
}

// tickAll plays a tick in which all entities move.
func (c *loadWorld) tickAll() {
	for i, p := range c.positions {
		c.move(p, i)
	}
	c.replicate()
}

// move changes a position in an unpredictable way.
func (c *loadWorld) move(p *tPosition, i int) {
	h := uint32(i)*2654435761 ^ uint32(c.ticks)*2246822519
	h = (h ^ h>>15) * 2654435761
	p.X += float32(h>>24)/64 - 2
	p.Z += float32(h>>16&255)/64 - 2 + 1./128
	for _, v := range []*float32{&p.X, &p.Z} {
		if *v > 100 {
			*v -= 200
		} else if *v < -100 {
			*v += 200
		}
	}
}

func (c *loadWorld) replicate() {
	c.answer()
	c.server.Replicate()
}

// answer begins a tick, in which the members answer what they were sent.
func (c *loadWorld) answer() {
	c.ticks++
	for _, m := range c.members {
		m.sizes = append(m.sizes, 0)
		if packet := m.answer(c.ticks); packet != nil && !m.deaf {
			_ = m.peer.Receive(packet)
		}
	}
}

// sent calls fn for every slot that was sent to the peer in the latest tick.
func sent(p *Peer, fn func(slot int, kind baseline.RecordKind)) {
	for q := p.acked.Log.Next - 1; ; q-- {
		packet := p.acked.Log.Find(q)
		if packet == nil || packet.Tick != p.server.snap.Tick {
			return
		}
		for i := range packet.Count {
			r := p.acked.Log.Record(packet, i)
			for slot := range bitset.Slots(int(r.Block), r.Mask) {
				fn(slot, r.Kind)
			}
		}
	}
}

// requireWithin checks that in no span of ticks more bytes were sent than rate and depth allow.
func requireWithin(tb testing.TB, sizes []int, rate, tickRate, depth int) {
	tb.Helper()
	excess, largest := 0, 0
	for _, bytes := range sizes {
		excess = max(excess, 0) + bytes*tickRate - rate
		largest = max(largest, excess)
	}
	require.LessOrEqual(tb, largest, depth*tickRate, "more than the rate by %d bytes", largest/tickRate)
}

// countBytes adds the bytes sent to a connected peer to the last of sizes.
func countBytes(p *Peer, sizes *[]int) {
	send := p.out.Send
	p.out.Send = func(packet []byte) error {
		if p.Connected() {
			(*sizes)[len(*sizes)-1] += len(packet)
		}
		return send(packet)
	}
}

// depthOf returns how many bytes beyond the rate a peer may be sent.
func depthOf(p *Peer, rate int) int {
	o := p.server.opts
	return max(rate/8, rate*int(p.acked.Interval)/o.TickRate) + 2*o.MTU
}

func sum(sizes []int) (n int) {
	for _, s := range sizes {
		n += s
	}
	return n
}

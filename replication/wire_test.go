package replication

import (
	"bytes"
	"hash/fnv"
	"slices"
	"testing"
	"time"

	"github.com/arche-replicate/arche-replicate/delta"
	"github.com/arche-replicate/arche-replicate/replication/internal/config"
	"github.com/arche-replicate/arche-replicate/replication/internal/snapshot"
	"github.com/mlange-42/arche/ecs"
	"github.com/stretchr/testify/require"
)

// A fixture is a server with one client and no network: the test gets every packet and delivers,
// drops or damages it.
type fixture struct {
	t      testing.TB
	world  *ecs.World // the server's
	server *Server
	peer   *Peer
	mirror *ecs.World // the client's
	client *Client

	down, up [][]byte // sent, not taken yet
}

// defaultClientTimeout is the patience of a client without WithTimeout, in ticks of a server without WithTickRate.
const defaultClientTimeout = int(config.ClientTimeout / time.Second * config.DefaultTickRate)

func newWire(t testing.TB, schema *Schema, opts ...ServerOption) *fixture {
	world := ecs.NewWorld()
	x := &fixture{t: t, world: &world}
	x.server = NewServer(x.world, schema, append([]ServerOption{WithSeed(1)}, opts...)...)
	x.connect()
	x.restart(schema, 7)
	return x
}

// connectedWire returns a fixture after its handshake.
func connectedWire(t testing.TB, schema *Schema, opts ...ServerOption) *fixture {
	x := newWire(t, schema, opts...)
	for range 5 {
		x.round()
	}
	require.True(t, x.peer.Connected() && x.client.Connected())
	return x
}

// restart replaces the client by a new one with an empty world.
func (x *fixture) restart(schema *Schema, nonce uint64, opts ...ClientOption) {
	mirror := ecs.NewWorld()
	x.mirror = &mirror
	x.client = NewClientWith(x.mirror, schema, func(p []byte) error {
		x.up = append(x.up, bytes.Clone(p))
		return nil
	}, append([]ClientOption{WithSeed(nonce)}, opts...)...)
}

// connect gives the client a new peer on the server.
func (x *fixture) connect() {
	x.peer = x.server.Connect(func(p []byte) error {
		x.down = append(x.down, bytes.Clone(p))
		return nil
	})
}

// replaceServer replaces the server by a new one with a world of its own, as if its process had
// been restarted.
func (x *fixture) replaceServer(schema *Schema, seed uint64, opts ...ServerOption) {
	world := ecs.NewWorld()
	x.world = &world
	x.server = NewServer(x.world, schema, append([]ServerOption{WithSeed(seed)}, opts...)...)
	x.connect()
}

// replicate plays a tick and returns the packets from the server.
func (x *fixture) replicate() [][]byte {
	x.server.Replicate()
	return x.takeDown()
}

func (x *fixture) takeDown() [][]byte {
	p := x.down
	x.down = nil
	return p
}

// apply updates the client's world and returns the packets from the client.
func (x *fixture) apply() [][]byte {
	x.t.Helper()
	require.NoError(x.t, x.client.Apply())
	p := x.up
	x.up = nil
	return p
}

// split separates the packets of the latest tick, all state packets, into those that carry
// something of a slot and others.
func (x *fixture) split(packets [][]byte, slot int) (carry, others [][]byte) {
	for i, packet := range packets {
		p := x.peer.acked.Log.At(x.peer.acked.Log.Next - uint32(len(packets)-i))
		carries := false
		for k := range p.Count {
			r := x.peer.acked.Log.Record(p, k)
			carries = carries || int(r.Block) == slot>>6 && r.Mask>>(slot&63)&1 != 0
		}
		if carries {
			carry = append(carry, packet)
		} else {
			others = append(others, packet)
		}
	}
	return carry, others
}

func (x *fixture) deliver(packets ...[]byte) {
	for _, p := range packets {
		_ = x.client.Receive(p)
	}
}

func (x *fixture) answer(packets ...[]byte) {
	for _, p := range packets {
		_ = x.peer.Receive(p)
	}
}

// round is a tick on a perfect network.
func (x *fixture) round() {
	x.t.Helper()
	x.deliver(x.replicate()...)
	x.answer(x.apply()...)
	x.deliver(x.takeDown()...) // answers of the handshake
}

// untilRefused shakes hands until the client fails, and returns why. No packet from the server is longer than mtu.
func (x *fixture) untilRefused(mtu int) (err error) {
	x.t.Helper()
	for n := 0; err == nil; n++ {
		require.Less(x.t, n, 4000, "no answer")
		x.deliver(x.takeDown()...)
		err = x.client.Apply()
		x.answer(x.up...)
		x.up = nil
		for _, p := range x.down {
			require.LessOrEqual(x.t, len(p), mtu)
		}
	}
	return err
}

// jump skips many idle ticks at once, a multiple of snapshot.RecentTicks, with a packet from the
// server now and then.
func (x *fixture) jump(ticks delta.Tick) {
	x.rounds(2 * snapshot.RecentTicks)
	x.server.snap.Tick += ticks
	x.server.snap.Slots.Recent.Now += ticks
	x.client.recv.StateTick += uint32(ticks)
}

func (x *fixture) rounds(n int) {
	x.t.Helper()
	for range n {
		x.round()
	}
}

// spawn makes a replicated entity in the server's world.
func (x *fixture) spawn(ids ...ecs.ID) ecs.Entity {
	return x.world.NewEntity(append(slices.Clone(ids), ReplicatedID(x.world))...)
}

// mirrored returns the client's entity for one of the server's.
func (x *fixture) mirrored(e ecs.Entity) (ecs.Entity, bool) {
	id, ok := x.server.NetID(e)
	if !ok {
		return ecs.Entity{}, false
	}
	return x.client.Entity(id)
}

// requireEqual compares the worlds directly.
func (x *fixture) requireEqual(msg ...any) {
	x.t.Helper()
	o := newTruth()
	o.record(x.server)
	e := end{world: x.mirror, client: x.client}
	require.Empty(x.t, e.equalTo(x.server, o), msg...)
}

// requireSeen compares what the client has with what it should have.
func (x *fixture) requireSeen(want ...ecs.Entity) {
	x.t.Helper()
	var got, expected []NetID
	for id := range x.client.Entities() {
		got = append(got, id)
	}
	for _, e := range want {
		id, ok := x.server.NetID(e)
		require.True(x.t, ok)
		expected = append(expected, id)
		m, ok := x.client.Entity(id)
		require.True(x.t, ok, "%v is not mirrored", id)
		require.Equal(x.t, recordedOf(x.server, e), stateOf(faceOf(x.server.schema), x.mirror, m))
	}
	require.ElementsMatch(x.t, expected, got)
}

// worldHash returns a hash of everything that a client shows: entities, ticks and codes.
func worldHash(c *Client) uint64 {
	h := fnv.New64a()
	var b []byte
	var row []uint32
	put := func(v uint32) { b = append(b, byte(v), byte(v>>8), byte(v>>16), byte(v>>24)) }
	n := 0
	for id, e := range c.Entities() {
		tick, _ := c.StateTick(e)
		n++
		put(id.Slot)
		put(uint32(id.Generation))
		put(uint32(tick))
		for i := range c.schema.Components {
			comp := &c.schema.Components[i]
			if comp.Resource || !c.apply.View.World.Has(e, c.apply.View.Components[i]) {
				continue
			}
			put(uint32(i))
			row = append(row[:0], make([]uint32, comp.Words)...)
			comp.ReadColumn(row, c.apply.View.World.Get(e, c.apply.View.Components[i]), 1)
			for _, w := range row {
				put(w)
			}
		}
	}
	for k := range c.apply.View.Resources.Set.All() {
		if p := c.apply.View.Resources.Find(k); p != nil {
			comp := &c.schema.Components[k]
			put(uint32(k))
			row = append(row[:0], make([]uint32, comp.Words)...)
			comp.ReadColumn(row, p, 1)
			for _, w := range row {
				put(w)
			}
		}
	}
	put(uint32(n))
	put(uint32(c.apply.View.World.Stats().Entities.Used))
	h.Write(b)
	return h.Sum64()
}

// position returns the client's position of an entity.
func (x *fixture) position(e ecs.Entity) *tPosition {
	x.t.Helper()
	m, ok := x.mirrored(e)
	require.True(x.t, ok, "not mirrored")
	return (*tPosition)(x.mirror.Get(m, ecs.ComponentID[tPosition](x.mirror)))
}

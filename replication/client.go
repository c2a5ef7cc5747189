package replication

import (
	"errors"
	"fmt"

	"github.com/arche-replicate/arche-replicate/delta"
	"github.com/arche-replicate/arche-replicate/replication/internal/clock"
	"github.com/arche-replicate/arche-replicate/replication/internal/schema"
	"github.com/arche-replicate/arche-replicate/replication/internal/wire"
	"github.com/mlange-42/arche/ecs"
)

// A Client makes a world follow a server's. Receive decodes packets and touches no
// world; Apply brings the world up to date and answers the server. The two must not run
// at the same time.
type Client struct {
	world   *ecs.World
	schema  *schema.Schema
	session clientSession

	components []ecs.ID // none for resources
	marker     ecs.ID
	spawnWith  []ecs.ID // components of the user's for all that is spawned
	mark       worldWatch

	origin      uint64 // of the present session's NetIDs
	shownOrigin uint64 // of those that the world shows
	leftover    bool   // the world may show what the present session does not know

	recv receiver

	resources resourceTypes

	names entityNames // of what was ever mirrored, if there are entities in messages or inputs

	referrers referrers
	relations relations
	hooks     hooks
	expected  expectations

	divergence *Divergence // the first that was found

	apply applier
	clock clock.Ticks
	talk  *clientTalk // nil: the schema has neither messages nor inputs
	stats ClientStats
}

type clientOptions struct {
	maxEntities int
	seed        uint64
	seeded      bool
	mtu         int
	timeout     int

	noCompact bool
	spawnWith []ecs.ID
}

// A ClientOption configures a [Client].
type ClientOption func(*clientOptions)

// WithMaxEntities sets how large a server's world the client has room for: n is the most
// entities that the server replicates at a time, whether this client may see them or not.
// The default is 1,048,576. What comes on top need not be counted: resources, what entities
// have under conditions, and the slots of those that end in the tick in which others begin.
//
// It bounds the client's memory: there are 2n slots, as many again for each condition in the
// client's schema, and up to 257 states of each are kept. A world of at most n entities is
// mirrored whole. The server is told of the bound and withholds entities that have no slot
// below it, so that all others are mirrored still: [PeerStats.Withheld] counts them. A packet
// that names a slot beyond the bound is refused as malformed.
//
// Panics on less than 1 or more than 2^30.
func WithMaxEntities(n int) ClientOption {
	if n < 1 || n > 1<<30 {
		panic(fmt.Sprintf("replication: WithMaxEntities(%d): use 1 to 2^30", n))
	}
	return func(o *clientOptions) { o.maxEntities = n }
}

// WithNonce sets the number that tells this client's introduction from others, for
// tests and recordings; those of later introductions follow from it. They are random by
// default. Never use one twice on a connection: the server would take the second client
// for the first and go on where that one was.
func WithNonce(nonce uint64) ClientOption {
	return func(o *clientOptions) { o.seed, o.seeded = nonce, true }
}

// WithClientMTU sets the largest packet that the client sends, in bytes. The default is
// 1200. Only messages and inputs make large packets: others take at most 219 bytes, which
// is why the least is 256.
//
// Panics on less than 256 or more than 65,507.
func WithClientMTU(bytes int) ClientOption {
	if bytes < minClientMTU || bytes > maxMTU {
		panic(fmt.Sprintf("replication: a client's MTU of %d bytes: use %d to %d", bytes, minClientMTU, maxMTU))
	}
	return func(o *clientOptions) { o.mtu = bytes }
}

// minClientMTU has room for the largest ack packet.
const minClientMTU = 256

// NewClient returns a client that makes the world mirror a server's. Packets to the
// server go through send, in Apply, Disconnect and Close only; a packet belongs to the
// client again when send returns. The schema must equal the server's; it is sealed.
//
// The mirrored entities carry the component [Mirrored]. The user may add components that
// are not in the schema to them, and remove entities or components: they stay removed
// until the server spawns or adds them anew. A world that the user resets is filled again
// by the next Apply, with all that was mirrored, removed or not. All this holds for
// resources, too; one that the user has when the server adds it is taken over.
//
// Panics if the world is locked.
func NewClient(world *ecs.World, schema *Schema, send func(packet []byte) error, opts ...ClientOption) *Client {
	if world == nil || schema == nil || send == nil {
		panic("replication: NewClient needs a world, a schema and a function that sends a packet")
	}
	if world.IsLocked() {
		panic("replication: NewClient on a locked world: make clients outside of queries, since they register components")
	}
	o := clientOptions{maxEntities: 1 << 20, mtu: 1200, timeout: defaultServerTimeout}
	applyOptions("NewClient", &o, opts)
	types := &schema.raw
	types.Seal()
	c := &Client{schema: types}
	c.world = world
	c.marker = MirroredID(world)
	c.mark = watchWorld(world)
	c.spawnWith = o.spawnWith
	var relations delta.Set
	for i := range types.Components {
		if types.Components[i].Resource {
			c.components = append(c.components, ecs.ID{}) // none
			continue
		}
		id := ecs.TypeID(world, types.Components[i].Typ)
		c.components = append(c.components, id)
		if info, ok := ecs.ComponentInfo(world, id); ok && info.IsRelation {
			relations.Add(i)
		}
	}
	c.resources.init(world, types)
	slots := slotsFor(o.maxEntities, len(types.Conditions), c.resources.any)
	c.session = newClientSession(&o, send, &c.stats, types.Hash(), slots)
	c.recv = newReceiver(types, &c.stats, slots, relations)
	c.referrers.limit = slots
	if types.Talks() {
		c.talk = newClientTalk(c, o.mtu, slots)
	}
	c.checkSpawnComponents()
	return c
}

// mustExist panics if the client is nil, or zero.
func (c *Client) mustExist() {
	if c == nil || c.world == nil {
		panic("replication: there is no client: NewClient makes one")
	}
}

// Connected reports whether the server has accepted the client, and has not been silent
// for too long since: whether its status is [StatusConnected].
func (c *Client) Connected() bool {
	c.mustExist()
	return c.Status() == StatusConnected
}

// Tick returns the newest server tick of which a packet came.
func (c *Client) Tick() uint32 {
	c.mustExist()
	return c.recv.nearTick
}

// Stats returns what came to and went from the client.
func (c *Client) Stats() ClientStats {
	c.mustExist()
	return c.stats
}

// Entity returns the entity of the client's world that mirrors the given one.
func (c *Client) Entity(id NetID) (ecs.Entity, bool) {
	c.mustExist()
	m := c.recv.mirrors.at(id.Slot)
	if m == nil || !c.intact() || !m.shown || m.removed || m.generation != id.Generation || !alive(c.world, m.entity) {
		return ecs.Entity{}, false
	}
	return m.entity, true
}

// NetID returns what an entity of the client's world mirrors.
func (c *Client) NetID(e ecs.Entity) (NetID, bool) {
	c.mustExist()
	if !c.intact() {
		return NetID{}, false
	}
	m := (*Mirrored)(lookUp(c.world, e, c.marker))
	if m == nil {
		return NetID{}, false
	}
	if own, ok := c.Entity(m.id); !ok || own != e {
		return NetID{}, false
	}
	return m.id, true
}

// Each calls fn for every mirrored entity, in the order of slots, with the server tick
// of the state that it shows. fn must not change the structure of the world.
//
// Panics if fn is nil.
func (c *Client) Each(fn func(id NetID, e ecs.Entity, tick uint32)) {
	c.mustExist()
	if fn == nil {
		panic("replication: Each needs a function")
	}
	if !c.intact() {
		return
	}
	for i, page := range c.recv.mirrors.pages {
		for j := range page {
			m := &page[j]
			if m.shown && !m.removed && alive(c.world, m.entity) {
				fn(NetID{uint32(i*mirrorPage + j), m.generation}, m.entity, uint32(m.tick))
			}
		}
	}
}

// Receive takes a packet from the server. It only decodes: the world changes in Apply.
// The packet is not kept. Whatever it holds, nothing worse happens than an error, which
// is counted in [Client.Stats] too: [ErrMalformed], [ErrChecksum], [ErrStale],
// [ErrUnexpected], [ErrMissingBaseline] or [ErrMissingModel]. Panics in a hook.
func (c *Client) Receive(packet []byte) error {
	c.mustExist()
	c.notInHook("Receive")
	err := c.receive(packet)
	switch {
	case err == nil:
		c.session.heard()
	case errors.Is(err, wire.ErrStale):
		c.stats.Duplicates++
	case errors.Is(err, ErrMissingBaseline):
		c.session.heard()
		c.stats.MissingBaselines++
	case errors.Is(err, ErrMissingModel):
		c.session.heard()
		c.stats.MissingModels++
	default:
		c.stats.RefusedPackets++
	}
	return err
}

func (c *Client) receive(packet []byte) error {
	if body := wire.OpenHandshake(packet); body != nil {
		welcome, err := c.session.receiveAnswer(body, c.schema.FullText)
		if welcome != nil {
			c.begin(welcome)
		}
		return err
	}
	if !c.session.open() {
		return ErrUnexpected
	}
	if c.session.receiveBye(packet) {
		return nil
	}
	if hashes, err := c.receiveHashes(packet); hashes {
		return err
	}
	if c.session.ofFormer(packet) {
		return wire.ErrStale
	}
	body := c.session.down.Body(packet)
	if body != nil && wire.KindOf(body) == wire.KindMessages {
		return c.receiveTalk(packet, body)
	}
	if body == nil || wire.PacketKind(body[0]&(1<<wire.KindBits-1)) != wire.KindState {
		return wire.ErrMalformed
	}
	h, err := c.recv.receive(packet, body, c.session.down)
	switch {
	case errors.Is(err, errOutdated):
		c.noteLeftover()
		c.session.leave()
		return wire.ErrStale
	case stateTaken(err):
		c.clock.Arrive(h.Tick)
		c.session.stateCame(h.Complete)
	}
	return err
}

// answerServer sends what the server has to know: the introduction, then acks.
func (c *Client) answerServer() {
	if c.session.over() {
		return
	}
	switch due := c.session.step(); {
	case c.session.asks():
		if due {
			c.session.sayHello()
		}
	case c.recv.newAcks || !c.session.inForce && due:
		c.session.transmit(c.recv.writeAcks(c.session.ackKey()))
	}
}

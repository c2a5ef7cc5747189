package replication

import (
	"errors"
	"fmt"

	"github.com/arche-replicate/arche-replicate/replication/internal/apply"
	"github.com/arche-replicate/arche-replicate/replication/internal/archeutil"
	"github.com/arche-replicate/arche-replicate/replication/internal/clock"
	"github.com/arche-replicate/arche-replicate/replication/internal/config"
	"github.com/arche-replicate/arche-replicate/replication/internal/counters"
	"github.com/arche-replicate/arche-replicate/replication/internal/message"
	"github.com/arche-replicate/arche-replicate/replication/internal/receive"
	"github.com/arche-replicate/arche-replicate/replication/internal/schema"
	"github.com/arche-replicate/arche-replicate/replication/internal/session"
	"github.com/arche-replicate/arche-replicate/replication/internal/snapshot"
	"github.com/arche-replicate/arche-replicate/replication/internal/wire"
	"github.com/mlange-42/arche/ecs"
)

// A Client makes a world follow a server's. Receive decodes packets and touches no
// world; Apply brings the world up to date and answers the server. The two must not run
// at the same time.
type Client struct {
	diverged struct { // the same divergence is the same pointer
		inside *apply.Divergence
		public *Divergence
	}
	schema   *schema.Schema
	stats    counters.ClientCounters
	session  session.ClientSession
	recv     receive.Receiver
	apply    apply.Applier
	clock    clock.Ticks
	messages *message.ClientMessages // nil: the schema has neither messages nor inputs
}

// A ClientOption configures a [Client].
type ClientOption func(*config.ClientOptions)

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
	return func(o *config.ClientOptions) { o.MaxEntities = n }
}

// WithNonce sets the number that tells this client's introduction from others, for
// tests and recordings; those of later introductions follow from it. They are random by
// default. Never use one twice on a connection: the server would take the second client
// for the first and go on where that one was.
func WithNonce(nonce uint64) ClientOption {
	return func(o *config.ClientOptions) { o.Seed, o.Seeded = nonce, true }
}

// WithClientMTU sets the largest packet that the client sends, in bytes. The default is
// 1200. Only messages and inputs make large packets: others take at most 219 bytes, which
// is why the least is 256.
//
// Panics on less than 256 or more than 65,507.
func WithClientMTU(bytes int) ClientOption {
	if bytes < minClientMTU || bytes > wire.MaxMTU {
		panic(fmt.Sprintf("replication: a client's MTU of %d bytes: use %d to %d", bytes, minClientMTU, wire.MaxMTU))
	}
	return func(o *config.ClientOptions) { o.MTU = bytes }
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
	o := config.ClientOptions{MaxEntities: 1 << 20, MTU: 1200, Timeout: defaultServerTimeout}
	applyOptions("NewClient", &o, opts)
	types := &schema.raw
	types.Freeze()
	slots := snapshot.SlotsFor(o.MaxEntities, len(types.Conditions), archeutil.ResourcesOf(types).Any)
	c := &Client{schema: types}
	c.session = session.NewClientSession(&o, clientErrors, send, &c.stats, types.Hash(), slots)
	c.apply.Init(world, types, MirroredID(world), &c.recv, &c.stats, slots, o.SpawnWith)
	c.recv = receive.NewReceiver(types, &c.stats, slots, c.apply.View.RelationTypes())
	if types.UsesMessages() {
		links := message.ClientLinks{Clock: &c.clock, Stats: &c.stats, Transmit: c.session.Transmit, Ready: c.recv.Ready}
		c.messages = message.NewClientMessages(links, types, &c.apply, o.MTU, slots)
	}
	return c
}

// mustExist panics if the client is nil, or zero.
func (c *Client) mustExist() {
	if c == nil || c.apply.View.World == nil {
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
	return c.recv.NearTick
}

// Stats returns what came to and went from the client.
func (c *Client) Stats() ClientStats {
	c.mustExist()
	return ClientStats(c.stats)
}

// Entity returns the entity of the client's world that mirrors the given one.
func (c *Client) Entity(id NetID) (ecs.Entity, bool) {
	c.mustExist()
	return c.apply.View.Entity(wire.NetID(id))
}

// NetID returns what an entity of the client's world mirrors.
func (c *Client) NetID(e ecs.Entity) (NetID, bool) {
	c.mustExist()
	id, ok := c.apply.View.NetID(e)
	return NetID(id), ok
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
	c.apply.View.Each(func(id wire.NetID, e ecs.Entity, tick uint32) { fn(NetID(id), e, tick) })
}

// Receive takes a packet from the server. It only decodes: the world changes in Apply.
// The packet is not kept. Whatever it holds, nothing worse happens than an error, which
// is counted in [Client.Stats] too: [ErrMalformed], [ErrChecksum], [ErrStale],
// [ErrUnexpected], [ErrMissingBaseline] or [ErrMissingModel]. Panics in a hook.
func (c *Client) Receive(packet []byte) error {
	c.mustExist()
	c.apply.Hooks.NotInHook("Receive")
	err := c.receive(packet)
	switch {
	case err == nil:
		c.session.Received()
	case errors.Is(err, wire.ErrStale):
		c.stats.Duplicates++
	case errors.Is(err, wire.ErrMissingBaseline):
		c.session.Received()
		c.stats.MissingBaselines++
	case errors.Is(err, wire.ErrMissingModel):
		c.session.Received()
		c.stats.MissingModels++
	default:
		c.stats.RefusedPackets++
	}
	return err
}

func (c *Client) receive(packet []byte) error {
	if body := wire.OpenHandshake(packet); body != nil {
		welcome, err := c.session.ReceiveAnswer(body, c.schema.FullText)
		if welcome != nil {
			c.begin(welcome)
		}
		return err
	}
	if !c.session.Open() {
		return wire.ErrUnexpected
	}
	if c.session.ReceiveDisconnect(packet) {
		return nil
	}
	if hashes, err := c.apply.Hashes.ReceiveHashes(packet, c.session.Down); hashes {
		return err
	}
	if c.session.OfFormer(packet) {
		return wire.ErrStale
	}
	body := c.session.Down.Body(packet)
	if body != nil && wire.KindOf(body) == wire.KindMessages {
		if c.messages == nil {
			return wire.ErrUnexpected
		}
		return c.messages.Receive(packet, body, c.session.Down, c.recv.NearTick)
	}
	if body == nil || wire.PacketKind(body[0]&(1<<wire.KindBits-1)) != wire.KindState {
		return wire.ErrMalformed
	}
	h, err := c.recv.Receive(packet, body, c.session.Down)
	switch {
	case errors.Is(err, receive.ErrOutdated):
		c.apply.NoteLeftover()
		c.session.Leave()
		return wire.ErrStale
	case receive.StateTaken(err):
		c.clock.Arrive(h.Tick)
		c.session.StateCame(h.Complete)
	}
	return err
}

// Apply brings the world up to date with what was received, and sends the server its
// answer: introductions first, acknowledgements later. Call it once per frame on the
// goroutine that owns the world. Every entity goes from one state of the server to a
// later one, and so does every [Group]; it never shows a mixture. What refers to entities
// that come or go in this Apply is brought up to date at its end. After [ecs.World.Reset]
// it spawns all mirrored entities anew.
//
// The error is final: a [*SchemaError] that names the first difference between the schemas,
// or one that names another protocol version, or a [*DisconnectError] if one of the ends
// has ended the connection. After [Client.Reconnect] it is nil again. All other troubles
// mend themselves and are counted in [Client.Stats].
//
// Hooks are called in it, see [Client.OnSpawn], and then the functions of
// [OnServerMessage] for messages whose turn it is.
//
// Panics if the world is locked, and in a hook.
func (c *Client) Apply() error {
	c.mustExist()
	c.apply.Hooks.NotInHook("Apply")
	if c.apply.View.World.IsLocked() {
		panic("replication: Apply on a locked world: call it outside of queries, since it adds and removes entities")
	}
	if c.messages != nil && c.messages.Handling {
		panic("replication: Apply in a message handler, which runs in an Apply")
	}
	c.apply.Show(c.session.Complete)
	c.recv.Refresh()
	c.sendToServer()
	return c.session.Err
}

// sendToServer is the part of Apply that follows when the world is up to date.
func (c *Client) sendToServer() {
	t := c.messages
	if t != nil {
		t.HandleAll()
	}
	c.answerServer()
	if !c.session.Open() {
		return
	}
	if t != nil && (c.recv.AnyState || !c.session.Up.Off) { // without checksum, messages can't be what the server begins the session with
		t.SendTick(c.session.Up)
	}
	c.clock.Step()
	if t != nil {
		t.Step()
	}
}

// answerServer sends what the server has to know: the introduction, then acks.
func (c *Client) answerServer() {
	if c.session.Over() {
		return
	}
	switch send := c.session.Step(); {
	case c.session.Asks():
		if send {
			c.session.SendHello()
		}
	case c.recv.NewAcks || !c.session.InForce && send:
		c.session.Transmit(c.recv.WriteAcks(c.session.AckKey()))
	}
}

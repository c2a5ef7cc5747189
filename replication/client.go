package replication

import (
	"errors"
	"fmt"
	"strings"

	"github.com/arche-replicate/arche-replicate/bitbuf"
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
	world  *ecs.World
	schema *schema.Schema
	send   func(packet []byte) error

	fingerprint uint64
	components  []ecs.ID // none for resources
	marker      ecs.ID
	spawnWith   []ecs.ID // components of the user's for all that is spawned
	mark        worldWatch

	// Handshake, and what becomes of it: see reconnect.go, timeout.go and takeover.go.
	nonce       uint64 // of the present introduction
	seeded      bool   // the nonces are reproducible
	offset      uint32 // of the part of the server's schema that is asked for
	refused     error  // why the connection ended, or never was
	closed      bool
	welcomed    bool     // there is a session
	met         bool     // there was one at some time
	seeking     bool     // there is one, but the server says nothing
	silent      int      // calls of Apply since it said something
	timeout     int      // how many are too many
	sessionID   uint64   // of the present session
	session     wire.Key // of packets from the server
	answer      wire.Key // of packets to it
	former      wire.Key // of packets from the server in the session before
	formerHeld  wire.Key // the same of the latest one before of which states came
	complete    bool     // the server said that all has come that was there when the session began
	origin      uint64   // of the present session's NetIDs
	shownOrigin uint64   // of those that the world shows
	leftover    bool     // the world may show what the present session does not know

	keep      delta.Tick
	applies   uint32 // calls of Apply, to space introductions
	refreshed uint32 // pages of mirrors looked after so far
	nearTick  uint32 // to complete sequences and ticks with
	stateTick uint32 // of the newest state packet of any session
	anyState  bool
	inForce   bool // a state packet came since the last welcome
	window    wire.ReceiveWindow
	nearSeq   uint32
	ackedUpTo [2]uint32 // newest sequences in the last two acks sent

	mirrors  mirrorTable
	names    entityNames // of what was ever mirrored, if there are entities in messages or inputs
	shapes   shapes
	bare     *shape // of facets without components
	staged   staging
	freeWork workBound // of a packet; another one in tests
	parts    map[uint32]*assembly
	dirty    []uint32
	missing  []wire.MissingBaseline
	newAcks  bool

	referrers referrers
	relations relations
	resources resourceTypes
	hooks     hooks
	expected  expectations

	divergence *Divergence // the first that was found

	packed  *delta.Packed
	compact *compactReader // nil: the session is Packed
	codings uint8          // that the client takes besides
	out     []byte
	ack     wire.Ack
	apply   applier
	clock   clock.Ticks
	talk    *clientTalk // nil: the schema has neither messages nor inputs
	stats   ClientStats
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
	c := &Client{
		world: world, schema: types, send: send,
		fingerprint: types.Hash(),
		marker:      MirroredID(world),
		mark:        watchWorld(world),
		nonce:       o.seed,
		seeded:      o.seeded,
		timeout:     o.timeout,
		spawnWith:   o.spawnWith,
		shapes:      shapes{schema: types, rows: new(rowPool), known: map[delta.Set]*shape{}},
		parts:       map[uint32]*assembly{},
		packed:      delta.NewPacked(types.Layout),
		out:         make([]byte, 512),
		freeWork:    freeWork,
	}
	if !o.noCompact {
		c.codings = wire.TakesCompact
	}
	if !o.seeded {
		c.nonce = random64()
	}
	for i := range types.Components {
		if types.Components[i].Resource {
			c.components = append(c.components, ecs.ID{}) // none
			continue
		}
		id := ecs.TypeID(world, types.Components[i].Typ)
		c.components = append(c.components, id)
		if info, ok := ecs.ComponentInfo(world, id); ok && info.IsRelation {
			c.shapes.relations.Add(i)
		}
	}
	c.resources.init(world, types)
	slots := slotsFor(o.maxEntities, len(types.Conditions), c.resources.any)
	c.mirrors.limit, c.referrers.limit = slots, slots
	c.bare = bareShape(types, &c.shapes)
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
	return c.nearTick
}

// Stats returns what came to and went from the client.
func (c *Client) Stats() ClientStats {
	c.mustExist()
	return c.stats
}

// Entity returns the entity of the client's world that mirrors the given one.
func (c *Client) Entity(id NetID) (ecs.Entity, bool) {
	c.mustExist()
	m := c.mirrors.at(id.Slot)
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
	for i, page := range c.mirrors.pages {
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
		c.heard()
	case errors.Is(err, wire.ErrStale):
		c.stats.Duplicates++
	case errors.Is(err, ErrMissingBaseline):
		c.heard()
		c.stats.MissingBaselines++
	case errors.Is(err, ErrMissingModel):
		c.heard()
		c.stats.MissingModels++
	default:
		c.stats.RefusedPackets++
	}
	return err
}

func (c *Client) receive(packet []byte) error {
	if body := wire.OpenHandshake(packet); body != nil {
		return c.receiveAnswer(body)
	}
	if !c.welcomed {
		return ErrUnexpected
	}
	if c.receiveBye(packet) {
		return nil
	}
	if hashes, err := c.receiveHashes(packet); hashes {
		return err
	}
	if c.former.Signed(packet) || c.formerHeld.Signed(packet) {
		return wire.ErrStale
	}
	body := c.session.Body(packet)
	if body != nil && wire.KindOf(body) == wire.KindMessages {
		return c.receiveTalk(packet, body)
	}
	if body == nil || wire.PacketKind(body[0]&(1<<wire.KindBits-1)) != wire.KindState {
		return wire.ErrMalformed
	}
	h, rest, pad, ok := wire.ParseStateHeader(body, c.nearSeq, c.nearTick)
	if !ok {
		return wire.ErrMalformed
	}
	if !c.session.Matches(packet, h.Sequence, h.Tick) {
		return ErrChecksum
	}
	if !c.window.Fresh(h.Sequence) {
		return wire.ErrStale
	}
	err := c.decodeBody(rest, pad, h.Sequence, delta.Tick(h.Tick))
	if err != nil && !errors.Is(err, ErrMissingBaseline) && !errors.Is(err, ErrMissingModel) {
		return err
	}
	if c.anyState && c.outdated(h.Tick) { // and so may be what the packet is about
		c.forgetStates()
		c.leave()
		return wire.ErrStale
	}
	c.stats.Packets++
	c.stats.Bytes += uint64(len(packet))
	c.window.Add(h.Sequence, err == nil)
	c.nearSeq = c.window.Newest
	if !c.anyState || int32(h.Tick-c.nearTick) > 0 {
		c.nearTick, c.stateTick = h.Tick, h.Tick
	}
	c.anyState, c.inForce, c.newAcks = true, true, true
	c.clock.Arrive(h.Tick)
	c.complete = c.complete || h.Complete
	return err
}

// receiveAnswer takes the server's answer to the client's introduction.
func (c *Client) receiveAnswer(body []byte) error {
	switch wire.PacketKind(body[0]) {
	case wire.KindWelcome:
		var m wire.Welcome
		if !m.Parse(body) {
			return wire.ErrMalformed
		}
		if m.Compact && c.codings&wire.TakesCompact == 0 {
			return wire.ErrMalformed
		}
		if m.Nonce != c.nonce || !c.introducing() {
			return wire.ErrStale // the answer to an introduction that was repeated, or given up
		}
		c.receiveWelcome(&m)
		return nil
	case wire.KindRefuse:
		var m wire.Refuse
		if !m.Parse(body) {
			return wire.ErrMalformed
		}
		if m.Nonce != c.nonce || !c.introducing() || m.Offset != c.offset {
			return wire.ErrStale
		}
		c.welcomed = false // a server that does not know the session
		c.receiveRefusal(&m)
		return nil
	}
	return ErrUnexpected
}

// receiveRefusal looks for the first difference between the schemas in the piece of the
// server's text that came.
func (c *Client) receiveRefusal(m *wire.Refuse) {
	if m.Version != wire.ProtocolVersion {
		c.refused = fmt.Errorf("replication: the server speaks protocol version %d, this client %d: use the same release on both sides",
			m.Version, wire.ProtocolVersion)
		return
	}
	own := c.schema.FullText()
	from := int(c.offset)
	if from > len(own) {
		from = len(own)
	}
	same := 0
	for same < len(m.Text) && from+same < len(own) && m.Text[same] == own[from+same] {
		same++
	}
	if same == len(m.Text) && same > 0 && int64(m.Offset)+int64(same) < int64(m.Total) {
		c.offset += uint32(same) // all the same so far: ask for more
		c.applies = 0
		return
	}
	// What stands before the difference is the same on both sides.
	server := own[:from] + string(m.Text)
	if int64(m.Offset)+int64(len(m.Text)) < int64(m.Total) {
		// The rest did not come: see that the line of the difference is whole, if it
		// fits into a packet, and leave out all behind it.
		start := strings.LastIndexByte(own[:from+same], '\n') + 1
		if strings.IndexByte(server[from+same:], '\n') < 0 && start > from {
			c.offset, c.applies = uint32(start), 0
			return
		}
		own = upToLine(own, from+same)
		server = upToLine(server, from+same)
	}
	if diff := compareSchemas(server, own); diff != nil {
		c.refused = diff
		return
	}
	c.refused = errors.New("replication: the server refuses this client's schema, but shows the same one")
}

// upToLine cuts text behind the line that position i is in.
func upToLine(text string, i int) string {
	for ; i < len(text); i++ {
		if text[i] == '\n' {
			return text[:i+1]
		}
	}
	return text
}

const (
	// introduceEvery is how many Applies lie between two introductions, or between two acks
	// that no packet asked for.
	introduceEvery = 4
	// After patience of them there is less hope, and they are rarer.
	patience       = 64
	introduceRarer = 32
)

// answerServer sends what the server has to know: the introduction, then acks.
func (c *Client) answerServer() {
	if c.refused != nil {
		return
	}
	c.listen()
	due := c.applies%introduceEvery == 0 && (c.applies < patience || c.applies%introduceRarer == 0)
	c.applies++
	switch {
	case !c.welcomed || c.seeking:
		if due {
			h := wire.Hello{
				Version: wire.ProtocolVersion, Fingerprint: c.fingerprint, Nonce: c.nonce, Offset: c.offset,
				Codings: c.codings, Slots: c.mirrors.limit,
			}
			if c.welcomed {
				h.Session = c.sessionID
			}
			c.transmit(wire.Sealed(h.Append(nil)))
		}
	case c.newAcks || !c.inForce && due:
		c.sendAcks()
	}
}

// sendAcks acknowledges what came since the last time, and what came before once more.
func (c *Client) sendAcks() {
	a := &c.ack
	a.Sequence = 0
	a.Count = 0
	if c.window.Any {
		a.Sequence = c.window.Newest
		// Every packet is in two acks at least, for one may be lost.
		behind := c.window.Newest - c.ackedUpTo[1] + 32
		a.Count = int(min((behind+31)/32, wire.MaxAckWords))
		for i := range a.Words[:a.Count] {
			a.Words[i] = c.window.History(c.window.Newest - uint32(i*32))
		}
		if c.window.Newest != c.ackedUpTo[0] {
			c.ackedUpTo = [2]uint32{c.window.Newest, c.ackedUpTo[0]}
		}
	}
	a.Lacks = copy(a.Missing[:], c.missing)
	c.missing = c.missing[:0]
	key := c.answer
	key.Off = key.Off && c.inForce // the first words of a session have a checksum
	from := key.Size()
	w := bitbuf.NewWriter(c.out[from:])
	a.Write(&w)
	packet := c.out[:from+len(w.Bytes())]
	key.Write(packet, 0, 0)
	c.newAcks = false
	c.stats.Acks++
	c.transmit(packet)
}

func (c *Client) transmit(packet []byte) {
	if c.send(packet) != nil {
		c.stats.SendErrors++
	}
}

package replication

import (
	"fmt"

	"github.com/arche-replicate/arche-replicate/delta"
	"github.com/arche-replicate/arche-replicate/replication/internal/schema"
	"github.com/arche-replicate/arche-replicate/replication/internal/wire"
	"github.com/mlange-42/arche/ecs"
)

// A Server owns the truth: it captures its world once per tick and sends every [Peer]
// what changed. It reads no clock, and starts no goroutines but for [WithWorkers]; all
// methods must be called from the goroutine that owns the world.
type Server struct {
	snap   snapshot
	schema *schema.Schema
	opts   serverOptions

	sessions serverSessions

	interest interestSets

	peers  []*Peer
	asked  []*Peer   // the connected ones of them, in the present tick
	outs   []*sender // of these
	sender serverSender

	messages serverMessages

	handlers            []func(from *Peer) // of messages, by their number
	connecting, parting []func(p *Peer)    // hooks

	stats  ServerStats
	closed bool
}

type serverOptions struct {
	mtu           int
	window        int
	firstTick     uint32
	firstSequence uint16
	seed          uint64
	seeded        bool
	noChecksum    bool
	tickRate      int
	timeout       int        // ticks, 0 for none
	hashEvery     delta.Tick // 0 for no state hashes
	workers       int
	grid          delta.Tick
	marker        func(*ecs.World) ecs.ID

	// For tests, which compare or make much of what is rare.
	noStreams bool      // nothing but runs is shared
	noGroups  bool      // what is in groups does not wait for the others
	noSilence bool      // no peer is ever taken for silent
	compact   bool      // the coding of peers that ask for none
	freeWork  workBound // of a packet
}

// A ServerOption configures a [Server].
type ServerOption func(*serverOptions)

// WithMTU sets the largest packet the server sends, in bytes. The default is 1200,
// which passes everywhere; the least is 64. No packet of the server is ever larger;
// those of clients have a limit of their own, see [WithClientMTU].
//
// Panics on less than 64 or more than 65,507, which is all that UDP carries.
func WithMTU(bytes int) ServerOption {
	if bytes < wire.MinMTU || bytes > maxMTU {
		panic(fmt.Sprintf("replication: an MTU of %d bytes: use %d to %d", bytes, wire.MinMTU, maxMTU))
	}
	return func(o *serverOptions) { o.mtu = bytes }
}

// WithWindow sets for how many ticks the server keeps versions of changed state, and so
// how old an acknowledged state may be to serve as baseline. What is older is sent
// whole. The default is 64; it should be more than twice the longest round trip.
//
// Panics outside 8 to 120: the names of baselines on the wire have room for no more.
func WithWindow(ticks int) ServerOption {
	if ticks < 8 || ticks > wire.MaxWindow {
		panic(fmt.Sprintf("replication: a window of %d ticks: use 8 to %d", ticks, wire.MaxWindow))
	}
	return func(o *serverOptions) { o.window = ticks }
}

// WithFirstTick sets the tick of the first Replicate, 0 by default. Ticks wrap.
func WithFirstTick(t uint32) ServerOption {
	return func(o *serverOptions) { o.firstTick = t }
}

// WithFirstSequence sets the sequence number of the first packet to each peer, 0 by
// default. Sequences wrap.
func WithFirstSequence(s uint16) ServerOption {
	return func(o *serverOptions) { o.firstSequence = s }
}

// WithSeed makes session numbers reproducible, for tests and recordings. By default
// they are random. Two servers that a client meets one after the other must not have the
// same seed: it would take them for one.
func WithSeed(seed uint64) ServerOption {
	return func(o *serverOptions) { o.seed, o.seeded = seed, true }
}

// WithoutChecksum leaves out the 4 bytes of checksum of every packet. Use it where the
// transport guards integrity and sessions, as DTLS, QUIC and WebSockets do, and never
// over plain UDP: without it nothing tells damaged, forged and late packets from genuine
// ones. Handshakes, the first words of a session and byes keep theirs. Clients learn of
// it in the handshake.
func WithoutChecksum() ServerOption {
	return func(o *serverOptions) { o.noChecksum = true }
}

// WithTickRate says how many times per second Replicate is called, 60 by default. It is
// what budgets, and the timeout if none is set, are counted by; the server reads no clock.
//
// Panics outside 1 to 1000.
func WithTickRate(perSecond int) ServerOption {
	if perSecond < 1 || perSecond > 1000 {
		panic(fmt.Sprintf("replication: %d ticks per second: use 1 to 1000", perSecond))
	}
	return func(o *serverOptions) { o.tickRate = perSecond }
}

// WithBaselineGrid makes the server take updates against the newest acknowledged state
// of a tick that is a multiple of n, where a peer got everything so far. Peers with other
// round trips then share more of the encoding, and updates are a little larger, since
// baselines are older by (n-1)/2 ticks in the mean. The default is 1; with hundreds of
// peers 2 or 4 may pay. It changes nothing for peers that have a send interval.
//
// Panics if n is not 1, 2, 4 or 8.
func WithBaselineGrid(n int) ServerOption {
	if n != 1 && n != 2 && n != 4 && n != 8 {
		panic(fmt.Sprintf("replication: a baseline grid of %d ticks: use 1, 2, 4 or 8", n))
	}
	return func(o *serverOptions) { o.grid = delta.Tick(n) }
}

// WithWorkers makes Replicate encode for n peers at a time, on goroutines of its own that
// end before it returns. The packets are the same whatever n is, and all functions of the
// user are still called on the caller's goroutine, the send functions peer after peer in
// the order in which they connected. The default is 1; more than the number of cores is of
// no use.
//
// Panics outside 1 to 64.
func WithWorkers(n int) ServerOption {
	if n < 1 || n > maxWorkers {
		panic(fmt.Sprintf("replication: WithWorkers(%d): use 1 to %d", n, maxWorkers))
	}
	return func(o *serverOptions) { o.workers = n }
}

const (
	maxMTU = 65507
)

// NewServer returns a server that replicates the entities of the world that have the
// marker component [Replicated], with those of their components that the schema names.
// It seals the schema. Resources of the world that the schema names are replicated as
// well, to all peers.
//
// Several servers can replicate one world if each has a marker of its own; see
// [WithMarker]. Two that share one make Replicate panic.
//
// Panics if the world is locked.
func NewServer(world *ecs.World, schema *Schema, opts ...ServerOption) *Server {
	if world == nil || schema == nil {
		panic("replication: NewServer needs a world and a schema")
	}
	if world.IsLocked() {
		panic("replication: NewServer on a locked world: make servers outside of queries, since they register components")
	}
	o := serverOptions{
		mtu: 1200, window: 64, tickRate: 60, workers: 1, grid: 1, marker: ReplicatedID,
		freeWork: freeWork, timeout: -1,
	}
	applyOptions("NewServer", &o, opts)
	if o.timeout < 0 {
		o.timeout = defaultTimeout * o.tickRate
	}
	types := &schema.raw
	types.Seal()
	s := &Server{schema: types, opts: o}
	s.snap.schema, s.snap.opts, s.sessions.opts = types, &s.opts, &s.opts
	s.interest.snap, s.sessions.talks = &s.snap, types.Talks()
	s.snap.world, s.snap.mark, s.snap.tick = world, watchWorld(world), delta.Tick(o.firstTick-1)
	s.sessions.fingerprint, s.sessions.text = types.Hash(), types.FullText()
	s.sessions.random, s.sessions.origin = o.seed, s.newOrigin()
	for i := range types.Components {
		s.snap.histories = append(s.snap.histories, delta.NewHistory(types.Components[i].Words, o.window))
	}
	s.snap.slots.initClasses(len(types.Conditions))
	if types.Link >= 0 {
		s.snap.bare.weight = 1
		s.snap.bare.set.Add(types.Link)
	}
	s.snap.slots.recent.now = s.snap.tick
	s.snap.capture.init(world, types, o.marker)
	s.snap.resources.init(&s.snap)
	s.sender.workers.init(&s.snap, o.workers)
	s.messages.messenger.init(types, &s.snap, o.mtu, true, 0)
	s.handlers, s.messages.waits = make([]func(*Peer), len(types.Messages)), types.Waits()
	s.stats.Fields = fieldStats(types)
	return s
}

// mustExist panics if the server is nil, or zero.
func (s *Server) mustExist() {
	if s == nil || s.snap.world == nil {
		panic("replication: there is no server: NewServer makes one")
	}
}

// Connect adds a peer, to which packets go through send. The packet belongs to the
// server again when send returns. An error of send counts as a lost packet and is
// counted in [PeerStats.SendErrors]. send must not call back into the server.
//
// The peer is sent nothing but handshake answers until its client has introduced
// itself.
//
// Panics if the server is closed.
func (s *Server) Connect(send func(packet []byte) error, opts ...PeerOption) *Peer {
	s.mustExist()
	if send == nil {
		panic("replication: Connect needs a function that sends a packet")
	}
	if s.closed {
		panic("replication: Connect of a closed server: make a new one with NewServer")
	}
	o := peerOptions{}
	if s.opts.compact {
		o.coding = Compact
	}
	applyOptions("Connect", &o, opts)
	p := newPeer(s, send, o)
	p.acked.phase = s.sessions.joined
	s.sessions.joined++
	s.peers = append(s.peers, p)
	return p
}

// Disconnect ends the connection with a peer: [Peer.Disconnect] with [ReasonClosed].
func (s *Server) Disconnect(p *Peer) {
	s.mustExist()
	p.Disconnect(Reason{})
}

// Close disconnects all peers and frees what the server has registered with its world.
// Replicate and Connect panic afterwards. The marker components stay.
//
// Panics if the world is locked.
func (s *Server) Close() {
	s.mustExist()
	if s.snap.world.IsLocked() {
		panic("replication: Close on a locked world: call it outside of queries, since it frees cached filters")
	}
	s.closed = true
	for len(s.peers) > 0 {
		s.Disconnect(s.peers[0])
	}
	for _, t := range s.snap.capture.tables {
		s.snap.world.Cache().Unregister(&t.filter)
	}
	s.snap.capture.tables = nil
}

// Replicate makes a tick: it captures the world and sends every connected peer what it
// needs. Call it once per tick, after the systems ran. It does not change the structure
// of the world and works on a locked one.
//
// Panics if the server is closed, and in a message handler or hook of the server.
func (s *Server) Replicate() {
	s.mustExist()
	if s.closed {
		panic("replication: Replicate of a closed server: make a new one with NewServer")
	}
	if s.messages.handling {
		panic("replication: Replicate in a message handler or hook of the server: wait until the call that it runs in returns")
	}
	s.noticeReset()
	s.interest.groups.tidy(s.snap.tick, s.released)
	s.snap.tick++
	if s.dropSilent(); s.closed {
		return // by a hook
	}
	s.snap.slots.begin(s.snap.tick)
	s.snap.captureWorld(s.refreshPeers)
	for _, g := range s.snap.gone {
		s.interest.disown(g.slot, g.entity)
	}
	s.interest.settleOwners()
	s.snap.settleWeights()
	s.snap.slots.list()
	for _, g := range s.interest.grids {
		g.update()
	}
	for _, e := range s.interest.sets {
		e.update()
	}
	s.interest.groups.update(&s.snap)
	s.askPeers()
	s.sendStates()
	s.talkToAll()
}

// askPeers calls what the user gave to choose what connected peers are sent.
func (s *Server) askPeers() {
	s.asked, s.outs = s.asked[:0], s.outs[:0]
	for _, p := range s.peers {
		if p.conn.state == connected {
			p.out.speaks = p.speaks()
			s.asked, s.outs = append(s.asked, p), append(s.outs, &p.out)
		}
	}
	w := &s.sender.workers
	w.begin(&s.snap, s.outs)
	for _, p := range s.asked {
		p.sight.view.ask(s.snap.capture.tables)
		p.sight.askConditions(func(ask any) bool { return (*ask.(*func(*Peer) bool))(p) })
		w.prepareHere(&p.out)
	}
}

// sendStates sends the peers what changed, and ends the tick of the slots: also if a send
// function panics, or the next tick would have the news of this one as its own, which peers
// may have acknowledged by then.
func (s *Server) sendStates() {
	defer s.snap.slots.settle(s.snap.tick)
	s.sender.workers.run(s.snap.tick)
	for _, p := range s.peers {
		if p.conn.state == connected {
			p.out.flush()
			p.out.keep()
		}
	}
	s.sendHashes()
}

// refreshPeers keeps the ticks that peers hold of slots of a block within reach of serial arithmetic.
func (s *Server) refreshPeers(b int, slots uint64, limit delta.Tick) {
	for _, p := range s.peers {
		p.acked.refresh(b, slots, limit)
	}
}

// released reports whether a former member of a group means nothing to any peer any more.
func (s *Server) released(g *group, f formerMember) bool {
	for _, p := range s.peers {
		if p.conn.state == connected && !p.acked.released(g, f) {
			return false
		}
	}
	return true
}

// Tick returns the tick of the latest Replicate.
func (s *Server) Tick() uint32 {
	s.mustExist()
	return uint32(s.snap.tick)
}

// NetID returns the network ID of an entity that the latest Replicate found.
func (s *Server) NetID(e ecs.Entity) (NetID, bool) {
	s.mustExist()
	slot, ok := s.snap.slotOf(e)
	if !ok {
		return NetID{}, false
	}
	return NetID{Slot: uint32(slot), Generation: s.snap.slots.info[slot].generation}, true
}

// slotOf returns the slot of an entity that the latest capture found.
func (s *snapshot) slotOf(e ecs.Entity) (slot int, ok bool) {
	if !s.mark.intact() {
		return 0, false
	}
	m := (*marker)(lookUp(s.world, e, s.capture.marker))
	if m == nil {
		return 0, false
	}
	slot = int(m.slot) - 1
	if slot < 0 || slot >= s.slots.len() || !s.slots.alive.Has(slot) || s.slots.info[slot].entity != e || s.slots.facets(slot>>6) {
		return 0, false
	}
	return slot, true
}

// newSessionID returns a number for a new session, never one of the first few: random, or with [WithSeed] the
// next one of splitmix64.
func (s *serverSessions) newSessionID() uint64 {
	for {
		id := random64()
		if s.opts.seeded {
			s.random += wire.Golden64
			id = wire.Mix64(s.random)
		}
		if id >= wire.Epochs { // tags are the low bits, and no session is 0
			return id
		}
	}
}

// newOrigin returns the number of this server's NetIDs: no other server has the same one.
func (s *Server) newOrigin() uint64 {
	if s.opts.seeded {
		return wire.Mix64(^s.opts.seed)
	}
	return random64()
}

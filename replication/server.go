package replication

import (
	"fmt"

	"github.com/arche-replicate/arche-replicate/delta"
	"github.com/arche-replicate/arche-replicate/replication/internal/archeutil"
	"github.com/arche-replicate/arche-replicate/replication/internal/config"
	"github.com/arche-replicate/arche-replicate/replication/internal/interest"
	"github.com/arche-replicate/arche-replicate/replication/internal/message"
	"github.com/arche-replicate/arche-replicate/replication/internal/schema"
	"github.com/arche-replicate/arche-replicate/replication/internal/sender"
	"github.com/arche-replicate/arche-replicate/replication/internal/session"
	"github.com/arche-replicate/arche-replicate/replication/internal/snapshot"
	"github.com/arche-replicate/arche-replicate/replication/internal/wire"
	"github.com/mlange-42/arche/ecs"
)

// A Server owns the truth: it captures its world once per tick and sends every [Peer]
// what changed. It reads no clock, and starts no goroutines but for [WithWorkers]; all
// methods must be called from the goroutine that owns the world.
type Server struct {
	snap   snapshot.Snapshot
	schema *schema.Schema
	opts   config.ServerOptions

	sessions session.ServerSessions

	interest interest.Shared

	peers  []*Peer
	asked  []*Peer // the connected ones of them, in the present tick
	sender serverSender

	messages message.ServerMessages

	handlers            []func(from *Peer) // of messages, by their number
	connecting, parting []func(p *Peer)    // hooks

	stats  ServerStats
	closed bool
}

// A ServerOption configures a [Server].
type ServerOption func(*config.ServerOptions)

// WithMTU sets the largest packet the server sends, in bytes. The default is 1200,
// which passes everywhere; the least is 64. No packet of the server is ever larger;
// those of clients have a limit of their own, see [WithClientMTU].
//
// Panics on less than 64 or more than 65,507, which is all that UDP carries.
func WithMTU(bytes int) ServerOption {
	if bytes < wire.MinMTU || bytes > wire.MaxMTU {
		panic(fmt.Sprintf("replication: an MTU of %d bytes: use %d to %d", bytes, wire.MinMTU, wire.MaxMTU))
	}
	return func(o *config.ServerOptions) { o.MTU = bytes }
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
	return func(o *config.ServerOptions) { o.Window = ticks }
}

// WithFirstTick sets the tick of the first Replicate, 0 by default. Ticks wrap.
func WithFirstTick(t uint32) ServerOption {
	return func(o *config.ServerOptions) { o.FirstTick = t }
}

// WithFirstSequence sets the sequence number of the first packet to each peer, 0 by
// default. Sequences wrap.
func WithFirstSequence(s uint16) ServerOption {
	return func(o *config.ServerOptions) { o.FirstSequence = s }
}

// WithSeed makes session numbers reproducible, for tests and recordings. By default
// they are random. Two servers that a client meets one after the other must not have the
// same seed: it would take them for one.
func WithSeed(seed uint64) ServerOption {
	return func(o *config.ServerOptions) { o.Seed, o.Seeded = seed, true }
}

// WithoutChecksum leaves out the 4 bytes of checksum of every packet. Use it where the
// transport guards integrity and sessions, as DTLS, QUIC and WebSockets do, and never
// over plain UDP: without it nothing tells damaged, forged and late packets from genuine
// ones. Handshakes, the first words of a session and disconnects keep theirs. Clients learn of
// it in the handshake.
func WithoutChecksum() ServerOption {
	return func(o *config.ServerOptions) { o.NoChecksum = true }
}

// WithTickRate says how many times per second Replicate is called, 60 by default. It is
// what budgets, and the timeout if none is set, are counted by; the server reads no clock.
//
// Panics outside 1 to 1000.
func WithTickRate(perSecond int) ServerOption {
	if perSecond < 1 || perSecond > 1000 {
		panic(fmt.Sprintf("replication: %d ticks per second: use 1 to 1000", perSecond))
	}
	return func(o *config.ServerOptions) { o.TickRate = perSecond }
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
	return func(o *config.ServerOptions) { o.Grid = delta.Tick(n) }
}

// WithWorkers makes Replicate encode for n peers at a time, on goroutines of its own that
// end before it returns. The packets are the same whatever n is, and all functions of the
// user are still called on the caller's goroutine, the send functions peer after peer in
// the order in which they connected. The default is 1; more than the number of cores is of
// no use.
//
// Panics outside 1 to 64.
func WithWorkers(n int) ServerOption {
	if n < 1 || n > sender.MaxWorkers {
		panic(fmt.Sprintf("replication: WithWorkers(%d): use 1 to %d", n, sender.MaxWorkers))
	}
	return func(o *config.ServerOptions) { o.Workers = n }
}

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
	o := config.ServerOptions{
		MTU: 1200, Window: 64, TickRate: 60, Workers: 1, Grid: 1, Marker: ReplicatedID,
		FreeWork: config.FreeWork, Timeout: -1,
	}
	applyOptions("NewServer", &o, opts)
	if o.Timeout < 0 {
		o.Timeout = defaultTimeout * o.TickRate
	}
	types := &schema.raw
	types.Freeze()
	s := &Server{schema: types, opts: o}
	s.snap.Schema, s.snap.Opts, s.sessions.Opts = types, &s.opts, &s.opts
	s.interest.Snap, s.sessions.UsesMessages = &s.snap, types.UsesMessages()
	s.snap.World, s.snap.Mark, s.snap.Tick = world, archeutil.WatchWorld(world), delta.Tick(o.FirstTick-1)
	s.sessions.Fingerprint, s.sessions.Text = types.Hash(), types.FullText()
	s.sessions.Random, s.sessions.Instance = o.Seed, s.newInstance()
	for i := range types.Components {
		s.snap.Histories = append(s.snap.Histories, delta.NewHistory(types.Components[i].Words, o.Window))
	}
	s.snap.Slots.InitClasses(len(types.Conditions))
	if types.Link >= 0 {
		s.snap.Bare.Weight = 1
		s.snap.Bare.Set.Add(types.Link)
	}
	s.snap.Slots.Recent.Now = s.snap.Tick
	s.snap.Capture.Init(world, types, o.Marker)
	s.snap.Resources.Init(&s.snap)
	s.sender.workers.Init(&s.snap, o.Workers)
	s.messages.Messenger.Init(types, &s.snap, o.MTU, true, 0)
	s.handlers, s.messages.Waits = make([]func(*Peer), len(types.Messages)), types.Waits()
	s.stats.Fields = fieldStats(types)
	return s
}

// mustExist panics if the server is nil, or zero.
func (s *Server) mustExist() {
	if s == nil || s.snap.World == nil {
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
	if s.opts.Compact {
		o.coding = Compact
	}
	applyOptions("Connect", &o, opts)
	p := newPeer(s, send, o)
	p.acked.Phase = s.sessions.Joined
	s.sessions.Joined++
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
	if s.snap.World.IsLocked() {
		panic("replication: Close on a locked world: call it outside of queries, since it frees cached filters")
	}
	s.closed = true
	for len(s.peers) > 0 {
		s.Disconnect(s.peers[0])
	}
	for _, t := range s.snap.Capture.Tables {
		s.snap.World.Cache().Unregister(&t.Filter)
	}
	s.snap.Capture.Tables = nil
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
	if s.messages.Handling {
		panic("replication: Replicate in a message handler or hook of the server: wait until the call that it runs in returns")
	}
	s.noticeReset()
	s.interest.Groups.Tidy(s.snap.Tick, s.released)
	s.snap.Tick++
	if s.dropSilent(); s.closed {
		return // by a hook
	}
	s.snap.Slots.Begin(s.snap.Tick)
	s.snap.CaptureWorld(s.refreshPeers)
	s.disownGone()
	s.interest.SettleOwners()
	s.snap.SettleWeights()
	s.snap.Slots.List()
	for _, g := range s.interest.Grids {
		g.Update()
	}
	for _, e := range s.interest.Sets {
		e.Update()
	}
	s.interest.Groups.Update(&s.snap)
	s.askPeers()
	s.sendStates()
	s.sendMessages()
}

// disownGone ends the ownership of entities that the capture found gone. It is called before the next capture as well, as a
// function of the user's may have panicked in this one.
func (s *Server) disownGone() {
	for _, g := range s.snap.Gone {
		s.interest.Disown(g.Slot, g.Entity)
	}
	s.snap.Gone = s.snap.Gone[:0]
}

// askPeers calls what the user gave to choose what connected peers are sent.
func (s *Server) askPeers() {
	workers := &s.sender.workers
	workers.Begin()
	s.asked = s.asked[:0]
	for _, p := range s.peers {
		if p.conn.State == session.Connected {
			s.asked = append(s.asked, p)
			workers.Add(&p.out)
		}
	}
	workers.Ready(&s.snap)
	for _, p := range s.asked {
		p.sight.View.Ask(s.snap.Capture.Tables)
		p.sight.AskConditions(func(ask any) bool { return (*ask.(*func(*Peer) bool))(p) })
		p.out.Speaks = p.speaks()
		workers.PrepareHere(&p.out)
	}
	for _, p := range s.asked { // the functions of the others may have sent something to those that are prepared later
		p.out.Speaks = p.speaks()
	}
}

// sendStates sends the peers what changed, and ends the tick of the slots: also if a send
// function panics, or the next tick would have the news of this one as its own, which peers
// may have acknowledged by then.
func (s *Server) sendStates() {
	defer s.snap.Slots.Settle(s.snap.Tick)
	s.sender.workers.Run(s.snap.Tick)
	for _, p := range s.peers {
		if p.conn.State == session.Connected {
			p.out.Flush()
			p.out.Keep()
		}
	}
	s.sendHashes()
}

// refreshPeers keeps the ticks that peers hold of slots of a block within reach of serial arithmetic.
func (s *Server) refreshPeers(b int, slots uint64, limit delta.Tick) {
	for _, p := range s.peers {
		p.acked.Refresh(b, slots, limit)
	}
}

// released reports whether a former member of a group means nothing to any peer any more.
func (s *Server) released(g *interest.Group, f interest.FormerMember) bool {
	for _, p := range s.peers {
		if p.conn.State == session.Connected && !p.acked.Released(g, f) {
			return false
		}
	}
	return true
}

// Tick returns the tick of the latest Replicate.
func (s *Server) Tick() uint32 {
	s.mustExist()
	return uint32(s.snap.Tick)
}

// NetID returns the network ID of an entity that the latest Replicate found.
func (s *Server) NetID(e ecs.Entity) (NetID, bool) {
	s.mustExist()
	slot, ok := s.snap.SlotOf(e)
	if !ok {
		return NetID{}, false
	}
	return NetID{Slot: uint32(slot), Generation: s.snap.Slots.Info[slot].Generation}, true
}

// newInstance returns the number of this server's NetIDs: no other server has the same one.
func (s *Server) newInstance() uint64 {
	if s.opts.Seeded {
		return wire.Mix64(^s.opts.Seed)
	}
	return wire.Random64()
}

// serverSender is what sends: see [sender.Workers].
type serverSender struct {
	workers sender.Workers
	hashes  []byte // memory for a packet of them
}

// Entity returns the entity of the server's world that has the given network ID, if the
// latest Replicate found it. It may have been removed since, but not by a reset of the world.
func (s *Server) Entity(id NetID) (ecs.Entity, bool) {
	s.mustExist()
	return s.snap.EntityIn(id.Slot, id.Generation)
}

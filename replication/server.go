package replication

import (
	"iter"
	"sync/atomic"

	"github.com/arche-replicate/arche-replicate/delta"
	"github.com/arche-replicate/arche-replicate/replication/internal/archeutil"
	"github.com/arche-replicate/arche-replicate/replication/internal/config"
	"github.com/arche-replicate/arche-replicate/replication/internal/exclusive"
	"github.com/arche-replicate/arche-replicate/replication/internal/history"
	"github.com/arche-replicate/arche-replicate/replication/internal/interest"
	"github.com/arche-replicate/arche-replicate/replication/internal/message"
	"github.com/arche-replicate/arche-replicate/replication/internal/schema"
	"github.com/arche-replicate/arche-replicate/replication/internal/seam"
	"github.com/arche-replicate/arche-replicate/replication/internal/sender"
	"github.com/arche-replicate/arche-replicate/replication/internal/session"
	"github.com/arche-replicate/arche-replicate/replication/internal/snapshot"
	"github.com/arche-replicate/arche-replicate/replication/internal/wire"
	"github.com/mlange-42/arche/ecs"
)

// A Server is authoritative: it captures its world once per tick and sends every [Peer] what changed. All methods must
// be called from the goroutine that owns the world.
type Server struct {
	snap   snapshot.Snapshot
	schema *schema.Schema
	opts   config.ServerOptions

	sessions session.ServerSessions

	interest interest.Shared

	peers    []*Peer // in the order of their numbers
	connects uint64  // peers so far
	sender   serverSender

	messages message.ServerMessages

	handlers            []func(from *Peer) // of messages, by their number
	connecting, parting exclusive.Hooks[func(p *Peer)]
	drained             exclusive.Hooks[func(p *Peer)]
	joining             exclusive.Hooks[func(p *Peer, data []byte) error]
	refusing            exclusive.Hooks[func(p *Peer, reason error)]
	captured            []func() // called when the world was captured
	watchers            seam.Watchers

	stats  ServerStats
	closed atomic.Bool // for Accepts, which any goroutine may call
	calls  exclusive.Guard
}

// NewServer returns a server that replicates the entities of the world that have the marker component [Replicated],
// with those of their components that are in the schema, and the resources that are, to all peers. It freezes the
// schema. Several servers of one world need a marker each, see [WithMarker]; if two share one, Replicate panics.
//
// Panics if the world is locked, or if the world or the schema is nil.
func NewServer(world *ecs.World, schema *Schema, opts ...ServerOption) *Server {
	showServers()
	checkWorld("NewServer", world)
	if schema == nil {
		panic("replication: NewServer needs a schema: make one with NewSchema")
	}
	if world.IsLocked() {
		panic("replication: NewServer on a locked world: make servers outside of queries, since they " +
			"register components")
	}
	o := config.ServerOptions{
		EndOptions: config.EndOptions{MTU: defaultMTU, Timeout: -1},
		TickRate:   config.DefaultTickRate,
		Window:     64, Workers: 1, Marker: ecs.ComponentID[Replicated], FreeWork: config.FreeWork,
		LeastApart: config.LeastApart,
		JoinWork:   config.JoinWork,
	}
	applyOptions("NewServer", opts, func(opt ServerOption) { opt.ApplyToServer(&o) })
	if o.Timeout < 0 {
		o.Timeout = defaultServerTimeout
	}
	types := &schema.raw
	types.Freeze()
	s := &Server{schema: types, opts: o}
	s.snap.Schema, s.snap.Opts, s.sessions.Opts = types, &s.opts, &s.opts
	s.interest.Snap, s.sessions.UsesMessages = &s.snap, types.UsesMessages()
	s.snap.World, s.snap.Mark, s.snap.Tick = world, archeutil.WatchWorld(world), delta.Tick(o.FirstTick-1)
	s.sessions.Fingerprint, s.sessions.Text = types.Hash(), types.FullText()
	s.sessions.Instance = s.newInstance()
	s.sessions.SetSecret(o.Seeded, o.Seed)
	for i := range types.Components {
		s.snap.Histories = append(s.snap.Histories, history.New(types.Components[i].Words, o.Window))
	}
	s.snap.Slots.InitClasses(len(types.Conditions), delta.Tick(config.Ticks(o.SlotRest, o.TickRate)))
	if types.Link >= 0 {
		s.snap.Bare.Weight = 1
		s.snap.Bare.Set.Add(types.Link)
	}
	s.snap.Slots.Recent.Now = s.snap.Tick
	s.snap.Capture.Init(world, types, o.Marker, s.snap.Histories)
	s.snap.Resources.Init(&s.snap)
	s.snap.Steady.Init(types.Layout, &s.opts)
	s.sender.workers.Init(&s.snap, o.Workers)
	s.messages.Messenger.Init(types, &s.snap, true, 0)
	s.handlers, s.messages.Waits = make([]func(*Peer), len(types.Messages)), types.Waits()
	s.stats.Fields = fieldStats(types)
	return s
}

// guard returns what finds two goroutines in the server, and panics if there is no server.
func (s *Server) guard() *exclusive.Guard {
	if s == nil || s.snap.World == nil {
		panic("replication: there is no server: NewServer makes one")
	}
	return &s.calls
}

// mustExist is for calls that only read.
func (s *Server) mustExist() { s.guard().Check() }

// Connect adds a peer, whose packets are sent through send. A packet belongs to the server again when send returns. An
// error of send counts as a lost packet, and in [PeerStats.SendErrors]. send must not call back into the server.
//
// Panics if the server is closed.
func (s *Server) Connect(send func(packet []byte) error, opts ...PeerOption) *Peer {
	defer s.guard().Leave(s.guard().Enter(exclusive.Connect))
	if send == nil {
		panic("replication: Connect needs a function that sends a packet")
	}
	if s.closed.Load() {
		panic("replication: Connect of a closed server: make a new one with NewServer")
	}
	o := peerOptions{}
	if s.opts.Compact {
		o.coding = Compact
	}
	applyOptions("Connect", opts, func(opt PeerOption) { opt.applyToPeer(&o) })
	return s.add(newPeer(s, send, o))
}

// add adds a peer.
func (s *Server) add(p *Peer) *Peer {
	p.acked.Phase = delta.Tick(s.connects)
	s.connects++
	s.peers = append(s.peers, p)
	return p
}

// Accepts reports whether a packet is one in which a client asks for a session, perhaps with another schema or version.
// Transports ask before they call [Server.Connect] for a sender that they don't know. Nothing is kept; it may be called
// on any goroutine. It is false after Close.
func (s *Server) Accepts(packet []byte) bool {
	s.guard() // there must be a server; which goroutine calls is all the same
	return !s.closed.Load() && wire.IsHello(packet)
}

// Peers returns an iterator over the peers in the order in which they connected, from [Server.Connect] until the
// connection ends. It includes those whose clients have not completed the handshake, or were refused: see
// [Peer.Connected].
//
// The loop may connect and disconnect peers, and close the server. It leaves out peers that are disconnected before
// their turn or connected after it began.
func (s *Server) Peers() iter.Seq[*Peer] {
	s.mustExist()
	return func(yield func(*Peer) bool) {
		for i, end := 0, s.connects; i < len(s.peers) && s.peers[i].conn.Number < end; {
			p := s.peers[i]
			if !p.silent && !yield(p) {
				return
			}
			i = min(i+1, len(s.peers))
			for i > 0 && s.peers[i-1].conn.Number > p.conn.Number { // as many up to here are gone
				i--
			}
		}
	}
}

// Close disconnects all peers and frees what the server has registered with its world.
// Replicate and Connect panic afterwards. The marker components stay.
//
// Panics if the world is locked.
func (s *Server) Close() {
	defer s.guard().Leave(s.guard().Enter(exclusive.Close))
	if s.snap.World.IsLocked() {
		panic("replication: Close on a locked world: call it outside of queries, since it frees cached filters")
	}
	s.closed.Store(true)
	for len(s.peers) > 0 {
		s.peers[0].disconnect(Reason{})
	}
	for _, t := range s.snap.Capture.Tables {
		s.snap.World.Cache().Unregister(&t.Filter)
	}
	s.snap.Capture.Tables = nil
}

// newInstance returns the number of this server's NetIDs: no other server has the same one.
func (s *Server) newInstance() uint64 {
	if s.opts.Seeded {
		return wire.Mix64(^s.opts.Seed)
	}
	return wire.Random64()
}

// serverSender has the workers, and a buffer for hashes.
type serverSender struct {
	workers sender.Workers
	hashes  []byte // memory for a packet of them
}

// OnJoin makes the server ask fn whether a client may join, before it keeps anything of the client. data is what the
// client gave to [WithJoinData] or [Client.SetJoinData], at most 512 bytes; it is valid during the call. A nil error
// accepts the client. While fn returns [ErrJoinPending], the client waits and fn is called again. Another error refuses
// it: the client gets a [DisconnectError] with [ReasonRefused] and the error's text, cut to 50 bytes, or to 27 more
// than there are of data if that is more, and to 128 at most. To refuse with a code of your own, disconnect the peer.
//
// fn is called in [Peer.Receive] when a client with the right schema asks for a new session: usually once per session,
// and at most 16 times per tick of a peer. The peer of a refused client stays, so that the client may try again, until
// it times out.
//
// fn should only decide, since packets may be forged or late: it may be called though the session never begins, also
// while the peer is connected. Set up what belongs to the player in [Server.OnConnect], from [Peer.JoinData]. fn may do
// what a function of OnConnect may. If there are several functions, the first error counts. remove takes fn back.
//
// Panics if fn is nil.
func (s *Server) OnJoin(fn func(p *Peer, data []byte) error) (remove func()) {
	defer s.guard().Leave(s.guard().Enter(exclusive.OnJoin))
	if fn == nil {
		panic("replication: OnJoin needs a function")
	}
	s.sessions.Approves = true
	return s.joining.Add(&s.calls, exclusive.OnJoin, fn)
}

// OnRefuse makes the server call fn when a client was refused, with the reason: the error of a function of
// [Server.OnJoin], or a sentence that names the client's protocol version, or the lines in which its schema differs. It
// may be called several times for a long schema. The peer stays until it times out.
//
// fn is called in [Peer.Receive], and may do what a function of [Server.OnConnect] may. Panics if fn is nil.
func (s *Server) OnRefuse(fn func(p *Peer, reason error)) (remove func()) {
	defer s.guard().Leave(s.guard().Enter(exclusive.OnRefuse))
	if fn == nil {
		panic("replication: OnRefuse needs a function")
	}
	return s.refusing.Add(&s.calls, exclusive.OnRefuse, fn)
}

// refused calls the functions of OnRefuse. Without any, the reason is not put into words.
func (s *Server) refused(p *Peer) {
	defer p.conn.ForgetRefusal()
	if len(s.refusing) == 0 {
		return
	}
	reason := p.conn.Refusal()
	s.handle(func() {
		for fn := range s.refusing.Each() {
			fn(p, reason)
		}
	})
}

// approve asks the functions of OnJoin whether the client of a peer may join.
func (s *Server) approve(p *Peer, data []byte) (err error) {
	if p.silent {
		return nil
	}
	s.handle(func() {
		for fn := range s.joining.Each() {
			if err = fn(p, data); err != nil || p.conn.State == session.Ended {
				return
			}
		}
	})
	return err
}

// OnConnect makes the server call fn when a client's session begins: from then on the client is sent the world, and
// messages may be sent to it. fn is called in [Peer.Receive], before the client's first message is delivered; and again
// for the same peer if its client begins a new session.
//
// fn may change the world, send messages and disconnect peers. It must not call Receive or Replicate. Functions are
// called in the order in which they were registered.
//
// Panics if fn is nil.
func (s *Server) OnConnect(fn func(p *Peer)) (remove func()) {
	defer s.guard().Leave(s.guard().Enter(exclusive.OnConnect))
	if fn == nil {
		panic("replication: OnConnect needs a function")
	}
	return s.connecting.Add(&s.calls, exclusive.OnConnect, fn)
}

// OnDisconnect makes the server call fn once for each peer whose connection has ended, whichever end ended it, also if
// its client never connected; [Peer.Err] returns why. It is called in [Peer.Receive] if the client disconnected, at the
// start of [Server.Replicate] if it timed out (see [WithTimeout]), and in [Peer.Disconnect] and [Server.Close]. By then
// the peer no longer owns anything.
//
// fn may do what one of [Server.OnConnect] may, and close the server; a Replicate in which it does so sends nothing.
// Panics if fn is nil.
func (s *Server) OnDisconnect(fn func(p *Peer)) (remove func()) {
	defer s.guard().Leave(s.guard().Enter(exclusive.OnDisconnect))
	if fn == nil {
		panic("replication: OnDisconnect needs a function")
	}
	return s.parting.Add(&s.calls, exclusive.OnDisconnect, fn)
}

// OnDrain makes the server call fn when there is room for messages to a client again: a reliable message was refused
// with [ErrBufferFull], or one of [SendToViewers] was dropped, and now at most half of the buffer is in use. fn is
// called in [Peer.Receive], once until the buffer is full again, but not for a new session.
//
// fn may do what one of [Server.OnConnect] may. Panics if fn is nil.
func (s *Server) OnDrain(fn func(p *Peer)) (remove func()) {
	defer s.guard().Leave(s.guard().Enter(exclusive.OnDrain))
	if fn == nil {
		panic("replication: OnDrain needs a function")
	}
	return s.drained.Add(&s.calls, exclusive.OnDrain, fn)
}

// callHooks calls hooks for a peer.
func (s *Server) callHooks(list exclusive.Hooks[func(p *Peer)], p *Peer) {
	if len(list) == 0 || p.silent {
		return
	}
	s.handle(func() {
		for fn := range list.Each() {
			fn(p)
		}
	})
}

// handle calls what calls functions of the user's, in which no tick may begin.
func (s *Server) handle(call func()) {
	was, now := s.messages.Handling, s.calls.Open()
	s.messages.Handling = true
	defer func() { s.messages.Handling = was; s.calls.Leave(now) }()
	call()
}

// TickRate returns the ticks per second that [WithTickRate] has set.
func (s *Server) TickRate() int {
	s.mustExist()
	return s.opts.TickRate
}

// Tick returns the tick of the latest Replicate; before the first one it is 4294967295.
func (s *Server) Tick() Tick {
	s.mustExist()
	return s.snap.Tick
}

// Stats returns the server's counters. It takes time for each set of components in the world, and allocates.
func (s *Server) Stats() ServerStats {
	s.mustExist()
	var stats ServerStats
	s.readStats(&stats)
	stats.Unmarked = s.snap.Unmarked()
	return stats
}

// readStats fills stats, but for Unmarked. It uses the memory of stats.Fields.
func (s *Server) readStats(stats *ServerStats) {
	fields := stats.Fields[:0]
	*stats = s.stats
	stats.Fields = fields
	stats.Fields = append(stats.Fields, s.stats.Fields...)
	stats.Tick = s.snap.Tick
	for range s.Peers() {
		stats.Peers++
	}
	stats.Entities = s.snap.Slots.Live - s.snap.Slots.SubEntityCount
	if s.snap.Slots.Len() > 0 && s.snap.Resources.Any {
		stats.Entities-- // that slot has none
	}
	c := &s.snap.Counters
	stats.RawBits, stats.Spawns, stats.Despawns = c.RawBits, c.Spawns, c.Despawns
	stats.Clamped, stats.CopiedMarkers = c.Clamped, c.CopiedMarkers
	stats.RefusedSchemas, stats.LastRefusal = s.sessions.Refused, s.sessions.LastRefusal()
	for w := range s.sender.workers.List {
		c := &s.sender.workers.List[w]
		stats.Entries += c.Copied
		stats.Encoded += c.Made
		stats.SharedPackets += c.Shared
		for i := range stats.Fields {
			stats.Fields[i].Bits += c.FieldBits[i]
		}
		if c.Compact != nil {
			for i := range stats.Fields {
				stats.Fields[i].Bits += c.Compact.Costs[i] / delta.CostUnit
			}
		}
		for i, n := range c.Ages {
			stats.BaselineAges[i] += n
		}
	}
}

package replication

import (
	"errors"
	"slices"
	"strings"

	"github.com/arche-replicate/arche-replicate/replication/internal/ackstate"
	"github.com/arche-replicate/arche-replicate/replication/internal/config"
	"github.com/arche-replicate/arche-replicate/replication/internal/counters"
	"github.com/arche-replicate/arche-replicate/replication/internal/exclusive"
	"github.com/arche-replicate/arche-replicate/replication/internal/interest"
	"github.com/arche-replicate/arche-replicate/replication/internal/message"
	"github.com/arche-replicate/arche-replicate/replication/internal/seam"
	"github.com/arche-replicate/arche-replicate/replication/internal/sender"
	"github.com/arche-replicate/arche-replicate/replication/internal/session"
	"github.com/arche-replicate/arche-replicate/replication/internal/wire"
)

// A Peer is the server's record of one client, made by [Server.Connect].
type Peer struct {
	data   any // the user's
	remote Remote
	ended  *DisconnectError // why the connection ended, nil before
	server *Server
	silent bool                  // it has no client, see listen
	deaf   bool                  // no messages are for it yet
	opts   *config.ServerOptions // the server's, or with an MTU or checksum of the peer's own
	sends  *session.Outlet
	out    sender.Sender
	conn   session.Connection

	acked ackstate.Tracker

	sight    interest.Sight
	messages *message.PeerMessages  // nil: the schema has neither messages nor inputs
	stats    *counters.PeerCounters // apart, so that peers are small
}

func newPeer(s *Server, send func([]byte) error, o peerOptions) *Peer {
	p := &Peer{server: s, silent: o.silent, opts: o.of(&s.opts), stats: new(counters.PeerCounters)}
	p.sends, send = session.Lend(&s.calls, func(n int) { s.watchers.Note(seam.Sent, n) }, send)
	p.sight.Init(p, &s.snap, s.schema, &s.interest)
	p.acked.Init(&s.snap, &s.interest, &p.sight, p.stats, &p.out)
	p.out.Init(&s.snap, p.opts, &s.interest, &p.sight, &p.acked, p.stats, send)
	p.sight.OwnsAll, p.out.Joining.AtOnce = o.silent, o.silent
	approve := func(data []byte) error { return s.approve(p, data) }
	p.conn.Init(&s.sessions, p.opts, p.stats, p.out.Transmit, approve, o.coding == Compact, s.connects, s.snap.Tick)
	p.reset()
	return p
}

// reset forgets all that was sent and acknowledged.
func (p *Peer) reset() {
	in := &p.conn.Session
	p.sight.Begin(in.Slots)
	p.acked.Begin(in.First, in.Compact, p.server.messages.Waits && !p.silent)
	p.out.Begin(in.Down, in.Compact)
	p.resetMessages()
}

func (p *Peer) close() {
	p.sight.End()
	p.acked.End()
	p.out.End()
	p.messages = nil
}

// SetData attaches a value of the user's to the peer, such as the player, in place of the previous one.
func (p *Peer) SetData(data any) {
	defer p.guard().Leave(p.guard().Enter(exclusive.SetData))
	p.data = data
}

// Data returns the value that [Peer.SetData] attached, nil before. It stays after the connection has ended.
func (p *Peer) Data() any {
	p.mustExist()
	return p.data
}

// Remote is where a client is.
type Remote struct {
	Transport string // such as "udp"
	Address   string // such as "203.0.113.7:40123"
}

// String returns both: "udp 203.0.113.7:40123".
func (r Remote) String() string { return strings.TrimSpace(r.Transport + " " + r.Address) }

// SetRemote notes where the client is, for [Peer.Remote]. Transports call it.
func (p *Peer) SetRemote(r Remote) {
	defer p.guard().Leave(p.guard().Enter(exclusive.SetRemote))
	p.remote = r
}

// Remote returns the transport and the address of the client, for logs and bans. It is known in all hooks, also after
// the connection has ended. It is empty if the transport does not call [Peer.SetRemote].
func (p *Peer) Remote() Remote {
	p.mustExist()
	return p.remote
}

// guard returns what finds two goroutines in the peer's server, and panics if there is no peer.
func (p *Peer) guard() *exclusive.Guard {
	if p == nil || p.server == nil {
		panic("replication: there is no peer: Server.Connect returns one")
	}
	return &p.server.calls
}

// mustExist is for calls that only read.
func (p *Peer) mustExist() { p.guard().Check() }

// Connected reports whether the handshake is complete, with the same schema at both ends, and the connection has not
// ended.
func (p *Peer) Connected() bool {
	p.mustExist()
	return p.conn.State == session.Connected
}

// JoinData returns what the client of the present session gave to [WithJoinData] or [Client.SetJoinData], or nil. It
// must not be changed; it stays valid.
func (p *Peer) JoinData() []byte {
	p.mustExist()
	return p.conn.Session.JoinData
}

// Stats returns the peer's counters.
func (p *Peer) Stats() PeerStats {
	p.mustExist()
	stats := PeerStats(*p.stats)
	stats.Budget, stats.Backlog, stats.LastSendError = int(p.out.Budget.Rate), p.out.Budget.Backlog(), p.sends.Last
	stats.RoundTrip = durationOf(float64(p.acked.Trip.Smooth)/8, p.server.opts.TickRate)
	stats.Compact = p.conn.Session.Compact
	stats.LostLarge, stats.LargestAcked = p.acked.Sizes.Row, int(p.acked.Sizes.Largest())
	return stats
}

// receive takes a packet.
func (p *Peer) receive(packet []byte) error {
	in, err := p.conn.Receive(packet, p.server.snap.Tick, p.acked.Log.Next)
	if p.conn.Refused {
		p.server.refused(p)
	}
	if err != nil {
		return err
	}
	if in.Begin {
		p.reset()
		p.server.callHooks(p.server.connecting, p)
		if p.conn.State == session.Ended {
			return nil // by a hook
		}
	}
	switch in.Use {
	case session.UseAck:
		return p.receiveAck(in.Body)
	case session.UseMessages:
		if err := p.messages.ReceivePacket(packet, in.Body); err != nil {
			return err
		}
		if p.messages != nil && p.messages.Drained() {
			p.server.callHooks(p.server.drained, p)
		}
	case session.UseEnd:
		p.end(p.conn.Why)
	}
	return nil
}

// Receive takes a packet from the client. The packet is not kept. Errors are counted in [Peer.Stats], and the
// connection continues: [ErrMalformed], [ErrChecksum], [ErrOverwritten], [ErrStale], [ErrUnexpected] or [ErrFlood].
// Call it between Replicates, on the same goroutine. It delivers messages, see [OnClientMessage].
//
// Panics in a message handler or hook of the server.
func (p *Peer) Receive(packet []byte) error {
	p.mustExist()
	if p.server.messages.Handling {
		panic("replication: Receive in a message handler or hook of the server: keep the packet until the " +
			"call that it runs in returns")
	}
	defer p.guard().Leave(p.guard().Enter(exclusive.PeerReceive))
	err := wire.Explain(p.receive(packet), packet)
	switch {
	case errors.Is(err, wire.ErrStale):
		p.stats.Duplicates++
	case err != nil:
		p.stats.RefusedPackets++
		if errors.Is(err, wire.ErrOverwritten) {
			p.stats.Overwritten++
		}
	default:
		p.conn.ReceivedAt = p.server.snap.Tick
	}
	return err
}

// receiveAck takes the body of a client's ack packet. Acks are advice: one for a packet
// that was never sent, or too long ago, is counted and otherwise ignored.
func (p *Peer) receiveAck(body []byte) error {
	if wire.KindOf(body) != wire.KindAck {
		return wire.ErrUnexpected
	}
	a := &p.server.sessions.Ack
	if err := a.Parse(body, p.acked.Log.Next); err != nil {
		return err
	}
	p.acked.Resolve(a)
	return nil
}

// Disconnect ends the connection and sends the client the reason, in packets that are sent at once. Pass what still
// arrives to [Peer.Receive], which returns [ErrUnexpected], so that the peer repeats the reason to a client that keeps
// asking.
//
// Call it between Replicates. The client does not reconnect by itself unless the code is [ReasonTimeout].
func (p *Peer) Disconnect(r Reason) {
	defer p.guard().Leave(p.guard().Enter(exclusive.PeerDisconnect))
	p.disconnect(r)
}

func (p *Peer) disconnect(r Reason) {
	if p.conn.State == session.Ended {
		return
	}
	r.Text = wire.Cut(r.Text, wire.MaxReasonText)
	// Also if the send function panics: a peer that timed out would make every later Replicate panic.
	defer p.end(session.Farewell{Code: uint8(r.Code), Text: r.Text, Remote: false})
	p.conn.SendDisconnect(uint8(r.Code), r.Text)
}

// Err returns why the connection has ended, a [*DisconnectError], or nil.
func (p *Peer) Err() error {
	p.mustExist()
	if p.ended == nil {
		return nil
	}
	return p.ended
}

// end takes the peer from the server.
func (p *Peer) end(why session.Farewell) {
	s := p.server
	s.peers = slices.DeleteFunc(s.peers, func(q *Peer) bool { return q == p })
	s.interest.DisownAll(&p.sight)
	p.conn.End(why)
	p.ended = &DisconnectError{Reason: Reason{ReasonCode(why.Code), why.Text}, Remote: why.Remote}
	if !why.Remote {
		p.ended.SendError = p.sends.Refusal()
	}
	p.close()
	s.callHooks(s.parting, p)
}

// resetMessages forgets all messages.
func (p *Peer) resetMessages() {
	s := p.server
	if !s.schema.UsesMessages() {
		return
	}
	t := &message.PeerMessages{
		Snap: &s.snap, Schema: s.schema, Messages: &s.messages, Acked: &p.acked, Stats: p.stats,
		Down: p.conn.Session.Down, Up: p.conn.Session.Up, MTU: p.opts.MTU,
		Send: p.out.SendMessages, Reported: s.snap.Tick,
	}
	t.Handler = func(number int) (handled, on bool) {
		h := s.handlers[number]
		if h == nil {
			return false, true
		}
		p.stats.MessagesReceived++
		h(p)
		return true, p.messages == t
	}
	p.messages = t
}

// speaks reports whether there are new messages for the peer.
func (p *Peer) speaks() bool { return p.messages != nil && p.messages.HasNew() }

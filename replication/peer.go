package replication

import (
	"errors"
	"fmt"

	"github.com/arche-replicate/arche-replicate/delta"
	"github.com/arche-replicate/arche-replicate/replication/internal/clock"
	"github.com/arche-replicate/arche-replicate/replication/internal/wire"
)

// A Peer is the server's view of one client: what it has acknowledged of every slot,
// and what is on its way. [Server.Connect] makes peers.
type Peer struct {
	server *Server
	out    sender
	conn   connection

	acked tracker

	sight sight
	talk  *peerTalk // nil: the schema has neither messages nor inputs
	stats peerCounters
}

func newPeer(s *Server, send func([]byte) error, o peerOptions) *Peer {
	p := &Peer{}
	p.sight.holder = p
	p.sight.snap, p.sight.schema, p.sight.interest = &s.snap, s.schema, &s.interest
	p.out.snap, p.out.opts, p.out.interest, p.out.sight, p.out.acked, p.out.stats = &s.snap, &s.opts, &s.interest, &p.sight, &p.acked, &p.stats
	p.acked.snap, p.acked.opts, p.acked.interest, p.acked.sight, p.acked.stats = &s.snap, &s.opts, &s.interest, &p.sight, &p.stats
	p.conn.sessions, p.conn.opts, p.conn.stats, p.conn.send = &s.sessions, &s.opts, &p.stats, p.out.transmit
	p.server, p.out.send, p.conn.compact, p.conn.heardAt = s, send, o.coding == Compact, s.snap.tick
	p.acked.interval, p.out.stream, p.acked.classes.slots, p.acked.outcome = 1, -1, &s.snap.slots, &p.out
	p.conn.session.first = p.conn.firstSequence(0)
	p.SetInterest(Interest{})
	p.reset()
	return p
}

// reset forgets all that was sent and acknowledged.
func (p *Peer) reset() {
	p.acked.acks.reset(&p.server.snap.slots, p.server.snap.tick)
	p.acked.due = nil
	p.acked.large = map[int]*largeState{}
	p.acked.log = newSentLog(p.conn.session.first)
	p.acked.trip = clock.RoundTrip{}
	p.out.budget.restart(p.server.snap.tick)
	p.acked.heard, p.out.resume, p.out.behind, p.out.yields, p.out.crowded = false, 0, 0, false, 0
	p.out.rests = false
	p.out.sending, p.out.outbox.failed = false, p.out.outbox.failed[:0]
	p.out.typical, p.out.usage = firstTypical, usage{spent: p.stats.spending()}
	p.acked.followed = p.acked.log.next
	for i := range p.acked.full {
		p.acked.full[i] = p.server.snap.tick // none that is to come
	}
	p.sight.view.visible, p.sight.view.next = nil, nil
	p.sight.view.kept = nil
	p.sight.view.room, p.sight.view.withheld = int(min(p.conn.session.slots, maxSlots)), 0
	p.acked.join, p.out.alive, p.acked.silence = join{}, keepAlive{next: p.acked.log.next}, silence{answered: p.acked.log.next}
	p.out.urgency, p.out.met = urgency{}, nil
	p.out.seal, p.out.compact = p.conn.session.down, p.conn.session.compact
	p.out.packet.compact, p.acked.classes.compact = nil, p.conn.session.compact
	if p.conn.session.compact {
		p.out.packet.compact = newCompactWriter(&p.server.snap)
	}
	p.resetTalk()
}

func (p *Peer) close() {
	p.conn.state = ended
	p.acked.acks, p.acked.due, p.acked.large, p.acked.log = ackTable{}, nil, nil, sentLog{}
	p.acked.structure = nil
	p.talk = nil
	p.sight.view, p.out.urgency, p.out.met = view{}, urgency{}, nil
	p.acked.join = join{}
	p.out.packet.compact = nil
}

// mustExist panics if the peer is nil, or zero.
func (p *Peer) mustExist() {
	if p == nil || p.server == nil {
		panic("replication: there is no peer: Server.Connect returns one")
	}
}

// Connected reports whether the client has introduced itself with the same schema and
// is sent state. When that ends, [Peer.Err] says why.
func (p *Peer) Connected() bool {
	p.mustExist()
	return p.conn.state == connected
}

// Stats returns what went to and came from the peer.
func (p *Peer) Stats() PeerStats {
	p.mustExist()
	stats := PeerStats(p.stats)
	stats.Budget = int(p.out.budget.rate)
	return stats
}

// RoundTrip returns the estimated time from sending a packet to learning that it came,
// in ticks, or 0 if none did yet.
func (p *Peer) RoundTrip() float64 {
	p.mustExist()
	return float64(p.acked.trip.Smooth) / 8
}

// SetSendInterval makes the server send state to the peer on every n-th tick only; 1, the
// default, is every tick. Peers with the same interval take turns.
//
// Panics if n is not 1 to 60.
func (p *Peer) SetSendInterval(n int) {
	p.mustExist()
	if n < 1 || n > maxInterval {
		panic(fmt.Sprintf("replication: a send interval of %d ticks: use 1 to %d", n, maxInterval))
	}
	p.acked.interval = delta.Tick(n)
}

// maxInterval keeps intervals well within the window and the timeouts.
const maxInterval = 60

// receive takes a packet.
func (p *Peer) receive(packet []byte) error {
	in, err := p.conn.receive(packet, p.server.snap.tick, p.acked.log.next)
	if err != nil {
		return err
	}
	if in.begin {
		p.reset()
		p.server.callHooks(p.server.connecting, p)
		if p.conn.state == ended {
			return nil // by a hook
		}
	}
	switch in.use {
	case useAck:
		return p.receiveAck(in.body)
	case useMessages:
		return p.talk.receiveTalk(packet, in.body)
	case useEnd:
		p.end(p.conn.why)
	}
	return nil
}

// Receive takes a packet from the client. The packet is not kept. Whatever it holds,
// nothing worse happens than an error: [ErrMalformed], [ErrChecksum], [ErrStale],
// [ErrUnexpected], [ErrFlood]. Call it between Replicates, on the same goroutine. Messages
// are handed over in it, see [OnMessage].
func (p *Peer) Receive(packet []byte) error {
	p.mustExist()
	err := p.receive(packet)
	switch {
	case errors.Is(err, wire.ErrStale):
		p.stats.Duplicates++
	case err != nil:
		p.stats.RefusedPackets++
	default:
		p.conn.heardAt = p.server.snap.tick
	}
	return err
}

func (p *sender) transmit(packet []byte) {
	if p.send(packet) != nil {
		p.stats.SendErrors++
	}
}

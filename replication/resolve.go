package replication

import "github.com/arche-replicate/arche-replicate/replication/internal/wire"

// What the server learns of the fate of its packets.

// receiveAck takes the body of a client's ack packet. Acks are advice: one for a packet
// that was never sent, or too long ago, is counted and otherwise ignored.
func (p *Peer) receiveAck(body []byte) error {
	if wire.PacketKind(body[0]) != wire.KindAck {
		return wire.ErrUnexpected
	}
	a := &p.server.sessions.Ack
	if err := a.Parse(body); err != nil {
		return err
	}
	p.acked.Resolve(a)
	return nil
}

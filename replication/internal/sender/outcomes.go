package sender

import "github.com/arche-replicate/arche-replicate/replication/internal/ackstate"

func (p *Sender) Timed(sent *ackstate.SentPacket) { p.Budget.sample(sent, p.Snap.Tick+1) }

func (p *Sender) Arrived(sent *ackstate.SentPacket, sequence uint32) {
	p.Budget.acknowledge(sent, p.Snap.Tick+1)
	if k := p.Packet.Compact; k != nil {
		k.Kept.Acknowledge(sequence)
	}
}

func (p *Sender) Lost(sequence uint32) {
	if k := p.Packet.Compact; k != nil {
		k.Kept.Lose(sequence)
	}
	p.Budget.lose()
}

package replication

// outcomes is who wants to know what becomes of packets.
type outcomes interface {
	// timed tells of a packet whose ack was the answer to it, so that the round trip is known.
	timed(sent *sentPacket)
	// arrived tells that a packet came.
	arrived(sent *sentPacket, sequence uint32)
	// lost tells that a packet counts as lost.
	lost(sequence uint32)
}

func (p *sender) timed(sent *sentPacket) { p.budget.sample(sent, p.snap.tick+1) }

func (p *sender) arrived(sent *sentPacket, sequence uint32) {
	p.budget.acknowledge(sent, p.snap.tick+1)
	if k := p.packet.compact; k != nil {
		k.kept.acknowledge(sequence)
	}
}

func (p *sender) lost(sequence uint32) {
	if k := p.packet.compact; k != nil {
		k.kept.lose(sequence)
	}
	p.budget.lose()
}

package ackstate

// outcomes is who wants to know what becomes of packets.
type outcomes interface {
	// Timed tells of a packet whose ack was the answer to it, so that the round trip is known.
	Timed(sent *SentPacket)
	// Arrived tells that a packet came.
	Arrived(sent *SentPacket, sequence uint32)
	// Lost tells that a packet counts as lost.
	Lost(sequence uint32)
}

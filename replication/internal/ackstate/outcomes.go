package ackstate

// outcomes receives the fate of each packet.
type outcomes interface {
	// Timed reports a packet whose ack came at once, so that its round trip is known.
	Timed(sent *SentPacket)
	// Arrived reports a packet that the client acknowledged.
	Arrived(sent *SentPacket, sequence uint32)
	// Lost reports a packet that counts as lost.
	Lost(sequence uint32)
}

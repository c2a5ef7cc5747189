// Package transport has what udp, quic and web have in common. Each of them has a
// Listen and a Dial, or what is usual in its place, with the same order of calls:
//
//	listener.Poll()    // gives the server what has arrived
//	server.Replicate()
//
//	conn.Poll()        // gives the client what has arrived
//	client.Frame(dt)
//
// Poll never waits, and nothing else touches the server or the client: both stay
// with the goroutine of the loop. One server may have several transports.
package transport

// Limits bound what the clients of a listener may take. A field that is zero has
// its default.
type Limits struct {
	Peers      int // clients at a time, 256
	PeersPerIP int // of them with one address of IPv4 or one /64 of IPv6, 8
	Inbox      int // packets of a client that wait for Poll, 64, of 2,048 bytes in the mean at most
	Outbox     int // packets to a client that wait for its socket, 8; UDP sends at once
}

// Stats counts what a listener did.
type Stats struct {
	Peers      int    // connections at present
	Opened     uint64 // connections so far
	Full       uint64 // connections refused by Limits.Peers
	FullIP     uint64 // connections refused by Limits.PeersPerIP
	InboxFull  uint64 // packets from clients dropped by Limits.Inbox
	OutboxFull uint64 // packets to clients dropped by Limits.Outbox: their connection is too slow
	NoClient   uint64 // packets of connections without a session that don't ask for one
	Silent     uint64 // connections closed since no client asked for a session within 10 seconds
}

// ConnStats counts what a client's connection did.
type ConnStats struct {
	Received   uint64 // packets
	InboxFull  uint64 // packets dropped, since 1,024 waited for Poll
	OutboxFull uint64 // packets dropped, since 8 waited for the socket
	Dials      uint64 // sockets opened, or tried to
	Failures   uint64 // of them, sockets that failed or closed
}

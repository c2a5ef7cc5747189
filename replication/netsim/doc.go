// Package netsim simulates a bad network between two ends, for tests, examples
// and anyone who wants to see how a game behaves on a train. It depends on the
// standard library only and knows nothing about replication: packets are bytes.
//
// In come packets ([Pipe.Send]) and ticks ([Pipe.Step]); out come the packets
// that survived, when they are due ([Pipe.Receive]), and counters ([Pipe.Stats]).
// A [Pipe] is one direction, a [Link] is two. Nothing sleeps, reads a clock or
// starts a goroutine: time is the number of steps taken, so a test runs as fast
// as the machine allows and a game loop that steps once per tick sees real time.
//
// # What happens to a packet
//
//	Send ──> queue ──────────> line ───────────> each copy ──────────> Receive
//	         Bandwidth         Burst             Latency ± Jitter
//	         QueueLimit        Loss              Reorder, ReorderBy
//	         (tail drop)       Duplicate         Corrupt
//
// The queue and its bandwidth are the pipe's own, or those of a [Bottleneck]
// that several pipes share.
//
// A packet sent at tick t over an idle pipe with latency L is due as soon as
// the pipe has been stepped to tick t+L: with L = 0 at once, within the tick
// in which it was sent; a fraction of a tick counts as a whole one, as the
// receiver looks only once per tick. Packets come out in the order in which
// they are due, and in the order in which they were sent where that is equal.
// Without Jitter and Reorder the order is thus kept; with Jitter alone, packets
// overtake each other where it exceeds their distance, as they do in real life.
//
// # Same seed, same trace
//
// Given the seed, the [Config] and the calls made, every delivery is the same
// on every run and on every machine: once a Config has been read, only
// integers decide. More than that, the dice of the n-th packet depend on the
// seed and on n alone, those of outages on the seed and the tick, and each kind
// of trouble has its own. Turning one knob therefore leaves the others as they
// were: a higher Loss loses the same packets and some more, and those that
// arrive do so at the same tick as before. A failing run can be bisected knob
// by knob.
//
// # Memory
//
// Buffers are recycled: once a pipe has seen its busiest moment it allocates
// nothing. At most 65,536 packets are held; what is sent on top is dropped.
package netsim

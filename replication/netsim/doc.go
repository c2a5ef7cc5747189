// Package netsim simulates a bad network between two ends, for tests, examples and anyone who wants to see how a game
// behaves on a train. It knows nothing about replication: packets are bytes.
//
// Packets ([Pipe.Send]) and ticks ([Pipe.Step]) go in; the packets that survived come out when they arrive
// ([Pipe.Receive]), with counters ([Pipe.Stats]). A [Pipe] is one direction, a [Link] is two. They don't sleep, read a
// clock or start a goroutine: time is the number of steps taken.
//
// A [Network] is pipes by the wall clock, around the send functions of real transports. A [Profile], such as [Mobile],
// describes a network for both.
//
// # What happens to a packet
//
//	Send ──> queue ──────────> line ───────────> each copy ──────────> Receive
//	         Bandwidth         Burst             Latency ± Jitter
//	         QueueLimit        Loss              Reorder, ReorderBy
//	         (tail drop)       Duplicate         Corrupt
//
// The queue and its bandwidth are the pipe's own, or those of a [Bottleneck] that several pipes share.
//
// A packet sent at tick t through an idle pipe with latency L arrives once the pipe has been stepped to tick t+L: with
// L = 0 immediately. Fractions of a tick are rounded up. Packets come out in the order of arrival, and packets that
// arrive at the same time in the order in which they were sent. With Jitter alone, packets overtake each other where it
// exceeds their distance, as on real links.
//
// # Same seed, same trace
//
// Given the seed, the [Config] and the calls made, every delivery is the same on every run and on every machine.
// Moreover, the random numbers of the n-th packet depend on the seed and on n alone, those of outages on the seed and
// the tick, and each effect has its own. So changing one setting leaves the others as they were: a higher Loss loses
// the same packets and some more. A failing run can be bisected setting by setting.
//
// # Memory
//
// Once a pipe has seen its busiest moment it allocates nothing. It holds at most 65,536 packets and drops those sent
// beyond that; a path of a Network, 1,024.
package netsim

package message

// This file sends reliable messages. They are numbered in a channel, sent until acknowledged, and
// handled in the order of their numbers.

import (
	"github.com/arche-replicate/arche-replicate/delta"
	"github.com/arche-replicate/arche-replicate/replication/internal/clock"
	"github.com/arche-replicate/arche-replicate/replication/internal/wire"
)

const (
	// MaxQueuedBytes bounds the size of the messages in a channel, at both ends.
	MaxQueuedBytes = 64 << 10
	// stuckTimeouts is the number of timeouts after which the dependencies of a message are sent again
	// though they are as before.
	stuckTimeouts = 4
	// maxRefreshBackoff bounds the exponent by which that becomes rarer for a message.
	maxRefreshBackoff = 6
	// maxBackoff bounds the exponent of the backoff: without acks, retransmissions wait for up to
	// 2^maxBackoff timeouts.
	maxBackoff = 4
	// usualSends is how often a message is sent before it becomes rarer, by up to 2^maxRarer. Hardly any gets lost so
	// often, even on a line that loses half of the packets; but a client could acknowledge none, and pretend that
	// everything sent later has arrived.
	usualSends = 16
	maxRarer   = 4
	// MaxProbes is the number of messages that are retransmitted in a tick while there are no acks.
	MaxProbes = 8
)

// OutChannel queues reliable messages until they are acknowledged, and decides which to send in a
// tick. It has neither packets nor a world.
type OutChannel struct {
	ring   ring[outMessage]
	First  uint32     // id of the first message that may not be handled yet
	Next   uint32     // id of the next message
	Unsent uint32     // id of the first message that was never sent
	bits   fifo[byte] // of the messages
	deps   fifo[wire.Dependency]

	awaited []wire.Dependency // all that the newest message with known dependencies has to wait for

	Size     int  // bytes of messages in the ring and of expected ones
	Expected int  // ids of expected messages
	refused  bool // there was no room for a message

	latest    delta.Tick // the newest time of a packet that arrived, according to acks
	hasLatest bool       // latest is valid
	backoff   uint8      // number of ticks with probes since the last ack
	probed    delta.Tick // the last of these ticks

	// Valid in the present tick.
	now, slack, timeout delta.Tick
	expired             int  // messages that are sent as probes: again, for want of acks
	probes              bool // probes are allowed
}

// outMessage is a message, or a fragment of one.
type outMessage struct {
	number    uint16
	fragment  wire.Fragment
	times     uint8 // how often it was sent, probes for want of acks aside
	refreshed uint8 // how often of these only for its dependencies
	arrived   bool  // the receiver has it, but it may wait there
	known     bool  // dependencies are known
	wrote     uint8 // number of dependencies with which it was sent last
	count     uint8 // number of dependencies
	tick      delta.Tick
	sent      delta.Tick // when it was sent last
	bits      uint32
	place     uint32 // of its bits
	deps      uint32 // of its dependencies
}

func (l *OutChannel) at(id uint32) *outMessage { return l.ring.at(id) }

// expect reserves room for a message of at most that size and number of fragments. It returns false if
// there is none.
func (l *OutChannel) expect(bytes, fragments int) bool {
	if int(l.Next-l.First)+l.Expected+fragments > wire.MaxQueued || l.Size+bytes > MaxQueuedBytes {
		l.refused = true
		return false
	}
	l.Expected += fragments
	l.Size += bytes
	return true
}

// drained reports, once, that there was no room for a message, and that the channel is half empty now: then any
// message fits.
func (l *OutChannel) drained() bool {
	if !l.refused || int(l.Next-l.First)+l.Expected > wire.MaxQueued/2 || l.Size > MaxQueuedBytes/2 {
		return false
	}
	l.refused = false
	return true
}

// cancel releases the room that expect reserved.
func (l *OutChannel) cancel(bytes, fragments int) {
	l.Expected -= fragments
	l.Size -= bytes
}

// push adds a message, for which there must be room.
func (l *OutChannel) push(number int, tick delta.Tick, data []byte, bits, fragments int) {
	if l.Empty() {
		l.hasLatest, l.backoff = false, 0 // acks may be old
	}
	m := outMessage{number: uint16(number), tick: tick, bits: uint32(bits)}
	if fragments == 1 {
		l.add(&m, data)
		return
	}
	size := (len(data) + fragments - 1) / fragments
	for m.fragment = wire.MoreFragments; len(data) > 0; data = data[size:] {
		if len(data) <= size {
			size, m.fragment = len(data), wire.LastFragment
		}
		m.bits = uint32(8 * size)
		l.add(&m, data[:size])
	}
}

// add gives a message or fragment the next id.
func (l *OutChannel) add(m *outMessage, data []byte) {
	l.Size += len(data)
	l.ring.fit(l.First, l.Next-l.First+1)
	m.place, m.deps = l.bits.add(data...), l.deps.add()
	*l.at(l.Next) = *m
	l.Next++
}

// head returns the first message, or its last fragment. The channel must not be empty.
func (l *OutChannel) head() *outMessage {
	id := l.First
	for l.at(id).fragment == wire.MoreFragments {
		id++
	}
	return l.at(id)
}

// Empty reports whether all messages have been handled.
func (l *OutChannel) Empty() bool { return l.First == l.Next }

// begin starts a tick.
func (l *OutChannel) begin(now delta.Tick, trip *clock.RoundTrip) {
	l.now, l.slack, l.timeout, l.expired = now, trip.Slack(), trip.Timeout(), 0
	l.probes = l.backoff == 0 || now-l.probed > l.timeout<<l.backoff
}

// mustSend reports whether a message must be sent now.
func (l *OutChannel) mustSend(m *outMessage) bool {
	rarer := min(max(m.times, usualSends)-usualSends, maxRarer)
	switch {
	case m.times == 0:
		return true
	case m.arrived:
		return false
	case l.hasLatest && l.latest.After(m.sent) && l.latest-m.sent > l.slack<<rarer:
		return true // packets that were sent well after it have arrived
	case !l.probes || l.now-m.sent <= l.timeout<<max(l.backoff, rarer) || l.backoff > 0 && l.expired == MaxProbes:
		return false
	}
	l.expired++
	return true
}

// end ends a tick. Without acks, probes become rarer.
func (l *OutChannel) end() {
	if l.expired > 0 {
		l.probed, l.backoff = l.now, min(l.backoff+1, maxBackoff)
	}
}

// noteArrival notes that a packet of a tick has arrived, be it one without messages. If it was sent after the last
// probe, the probe got lost alone, and the next one may come as soon.
func (l *OutChannel) noteArrival(at delta.Tick) {
	if at.After(l.probed) {
		l.backoff = 0
	}
}

// retrySoon notes that the other end is alive: probes become frequent again.
func (l *OutChannel) retrySoon() { l.backoff = min(l.backoff, 1) }

// stuck reports whether a message has been with the receiver for so long that it may be waiting for a
// state that never arrives. open is the number of its dependencies that are not acknowledged: if some
// have been, the receiver must learn that.
func (l *OutChannel) stuck(m *outMessage, open int) bool {
	since, wait := l.now-m.sent, l.timeout
	if open > 0 { // the states that it waits for need the bytes as well
		wait <<= min(m.refreshed, maxRefreshBackoff)
	}
	// The last packet with its dependencies may be lost, so they are sent again, but seldom.
	return m.arrived && (open < int(m.wrote) && since > wait || open < int(m.count) && since > stuckTimeouts*wait)
}

// noteSent notes that a message was sent.
func (l *OutChannel) noteSent(id uint32, deps int) {
	m := l.at(id)
	if m.arrived {
		m.refreshed = min(m.refreshed+1, maxRefreshBackoff)
	}
	m.sent, m.wrote = l.now, uint8(deps)
	if m.times == 0 || l.backoff == 0 {
		m.times = min(m.times+1, 100)
	}
	if !l.before(id, l.Unsent) {
		l.Unsent = id + 1
	}
}

// before compares ids, which wrap.
func (l *OutChannel) before(id, other uint32) bool { return int32(id-other) < 0 }

// acceptable reports whether an honest receiver can have sent the ack: it has no id that was never
// sent.
func (l *OutChannel) acceptable(a *wire.ChannelAck) bool {
	next := wire.Extend16(a.Next, l.First)
	if l.before(l.Unsent, next) {
		return false
	}
	for i := l.Unsent - next; i < uint32(a.Count*32); i++ {
		if a.Has(i) {
			return false
		}
	}
	return true
}

// ack processes an ack, which must be acceptable. It reports whether the ack has a later packet than
// those before it.
func (l *OutChannel) ack(a *wire.ChannelAck, now delta.Tick) (later bool) {
	next := wire.Extend16(a.Next, l.First)
	if l.before(next, l.First) && l.First-next > wire.MaxQueued {
		return false // a very late ack
	}
	for id := l.First; id != l.Unsent; id++ {
		if l.before(id, next) || a.Has(id-next) {
			l.at(id).arrived = true
		}
	}
	received := delta.Tick(wire.Extend16(a.Received, uint32(now)))
	if !received.After(now) && (!l.hasLatest || received.After(l.latest)) {
		l.latest, l.hasLatest, later = received, true, true
	}
	l.backoff = 0
	first := l.First
	for ; l.before(l.First, next); l.First++ {
		l.Size -= wire.ByteSize(int(l.at(l.First).bits))
	}
	if l.Empty() {
		if first != l.First {
			l.ring.emptied()
		}
		l.bits.drop(l.bits.base + uint32(len(l.bits.items)))
		l.deps.drop(l.deps.base + uint32(len(l.deps.items)))
	} else {
		l.bits.drop(l.at(l.First).place)
		l.deps.drop(l.at(l.First).deps)
	}
	return later
}

// depend sets the dependencies of a message, which has to wait for at most maxDependencies slots, given in their order.
// It leaves out those that the message before waits for, or waited for, as messages are handled in order.
func (l *OutChannel) depend(m *outMessage, slots []wire.Dependency) {
	m.known, m.count, m.deps = true, 0, l.deps.add()
	before := l.awaited
	for _, d := range slots {
		for len(before) > 0 && before[0].Slot < d.Slot {
			before = before[1:]
		}
		if len(before) == 0 || before[0] != d {
			l.deps.add(d)
			m.count++
		}
	}
	l.awaited = append(l.awaited[:0], slots...)
}

// dependsLike gives a message the dependencies of another one.
func (m *outMessage) dependsLike(other *outMessage) {
	m.known, m.count, m.deps = true, other.count, other.deps
}

package replication

import (
	"github.com/arche-replicate/arche-replicate/delta"
	"github.com/arche-replicate/arche-replicate/replication/internal/clock"
	"github.com/arche-replicate/arche-replicate/replication/internal/wire"
)

// Reliable messages go in lanes. In each of them they are numbered, sent until acknowledged, and handed over in the order
// of their numbers.

const (

	// maxQueuedBytes bounds their size, at both ends.
	maxQueuedBytes = 64 << 10
	// stuckTimeouts is after how many timeouts a receiver is told again what a message waits for.
	stuckTimeouts = 4
	// minQueued is the least size of a ring of messages.
	minQueued = 16
	// maxBackoff bounds how much longer than the timeout, as a power of two, messages wait while there are no acks.
	maxBackoff = 4
	// maxProbes is how many messages are sent again at a time while there are no acks.
	maxProbes = 8
)

// An outLane sends reliable messages. It knows of no world and no packets: put fills them, ack empties the lane.
type outLane struct {
	ring   []outMessage // by id modulo their number, a power of two
	first  uint32       // the first that is not known to be handed over
	next   uint32       // id of the next message
	unsent uint32       // the first that was never sent
	bits   fifo[byte]   // of the messages
	deps   fifo[dependency]

	size     int // bytes of messages in the ring, and of what is to come
	expected int // ids that what is to come takes

	latest  delta.Tick // the newest time of a packet that the receiver got, as its acks say
	heard   bool       // latest is valid
	backoff uint8      // in how many ticks messages were sent again for want of acks, since the last ack
	probed  delta.Tick // when that was the last time

	// Of the present tick.
	now, slack, timeout delta.Tick
	expired             int  // messages that were sent again for want of acks
	probes              bool // there may be such
}

// An outMessage is a message, or a fragment of one.
type outMessage struct {
	number   uint16
	fragment wire.Fragment
	times    uint8 // that it was sent
	came     bool  // it is with the receiver, but may wait there
	known    bool  // dependencies are known
	wrote    uint8 // dependencies that it was sent with the last time
	count    uint8 // dependencies
	tick     delta.Tick
	sent     delta.Tick // when it was sent last
	bits     uint32
	place    uint32 // of its bits
	deps     uint32 // place of its dependencies
}

func (l *outLane) at(id uint32) *outMessage { return &l.ring[id&uint32(len(l.ring)-1)] }

// expect makes room for a message of at most so many bytes and fragments, or returns false if there is none.
func (l *outLane) expect(bytes, fragments int) bool {
	if int(l.next-l.first)+l.expected+fragments > wire.MaxQueued || l.size+bytes > maxQueuedBytes {
		return false
	}
	l.expected += fragments
	l.size += bytes
	return true
}

// cancel gives back the room for a message.
func (l *outLane) cancel(bytes, fragments int) {
	l.expected -= fragments
	l.size -= bytes
}

// push adds a message, for which there must be room.
func (l *outLane) push(number int, tick delta.Tick, data []byte, bits, fragments int) {
	if l.empty() {
		l.heard, l.backoff = false, 0 // what was heard may be long ago
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

// add gives a message, or fragment, the next id.
func (l *outLane) add(m *outMessage, data []byte) {
	l.size += len(data)
	if n := len(l.ring); int(l.next-l.first) == n {
		ring := make([]outMessage, max(minQueued, 2*n))
		for id := l.first; id != l.next; id++ {
			ring[id&uint32(len(ring)-1)] = *l.at(id)
		}
		l.ring = ring
	}
	m.place, m.deps = l.bits.add(data...), l.deps.add()
	*l.at(l.next) = *m
	l.next++
}

// head returns the message that is to be handed over next, or the last of its fragments; the lane is not empty.
func (l *outLane) head() *outMessage {
	id := l.first
	for l.at(id).fragment == wire.MoreFragments {
		id++
	}
	return l.at(id)
}

// empty reports whether everything was handed over.
func (l *outLane) empty() bool { return l.first == l.next }

// begin starts a tick.
func (l *outLane) begin(now delta.Tick, trip *clock.RoundTrip) {
	l.now, l.slack, l.timeout, l.expired = now, trip.Slack(), trip.Timeout(), 0
	l.probes = l.backoff == 0 || now-l.probed > l.timeout<<l.backoff
}

// due reports whether a message is to be sent now.
func (l *outLane) due(m *outMessage) bool {
	switch {
	case m.times == 0:
		return true
	case m.came:
		return false
	case l.heard && l.latest.After(m.sent) && l.latest-m.sent > l.slack:
		return true // packets came that were sent well after it
	case !l.probes || l.now-m.sent <= l.timeout<<l.backoff || l.backoff > 0 && l.expired == maxProbes:
		return false
	}
	l.expired++
	return true
}

// end ends a tick. While nothing is heard, less and less is sent.
func (l *outLane) end() {
	if l.expired > 0 {
		l.probed, l.backoff = l.now, min(l.backoff+1, maxBackoff)
	}
}

// wake notes that the other end is alive: it is asked more often again.
func (l *outLane) wake() { l.backoff = min(l.backoff, 1) }

// stuck reports whether a message has been with the receiver for so long that one may ask whether it waits for something that
// won't come: it waits for open states, as far as the sender knows.
func (l *outLane) stuck(m *outMessage, open int) bool {
	since := l.now - m.sent
	// What it was told last may have got lost, so it is told again, but seldom.
	return m.came && (open < int(m.wrote) && since > l.timeout || open < int(m.count) && since > stuckTimeouts*l.timeout)
}

// sentNow notes that a message was sent.
func (l *outLane) sentNow(id uint32, deps int) {
	m := l.at(id)
	m.sent, m.wrote = l.now, uint8(deps)
	m.times = min(m.times+1, 100)
	if !l.before(id, l.unsent) {
		l.unsent = id + 1
	}
}

// before compares ids, which wrap.
func (l *outLane) before(id, other uint32) bool { return int32(id-other) < 0 }

// acceptable reports whether an honest receiver can have said that: nothing came that was never sent.
func (l *outLane) acceptable(a *wire.ChannelAck) bool {
	next := wire.Extend16(a.Next, l.first)
	if l.before(l.unsent, next) {
		return false
	}
	for i := l.unsent - next; i < uint32(a.Count*32); i++ {
		if a.Has(i) {
			return false
		}
	}
	return true
}

// ack takes what the receiver said, which must be acceptable. It reports whether that tells of packets later than what it said
// before.
func (l *outLane) ack(a *wire.ChannelAck, now delta.Tick) (later bool) {
	next := wire.Extend16(a.Next, l.first)
	if l.before(next, l.first) && l.first-next > wire.MaxQueued {
		return false // from long ago
	}
	for id := l.first; id != l.unsent; id++ {
		handed := l.before(id, next)
		if m := l.at(id); handed || a.Has(id-next) {
			m.came = true
		}
	}
	if heard := delta.Tick(wire.Extend16(a.Heard, uint32(now))); !heard.After(now) && (!l.heard || heard.After(l.latest)) {
		l.latest, l.heard, later = heard, true, true
	}
	l.backoff = 0
	for ; l.before(l.first, next); l.first++ {
		l.size -= wire.ByteSize(int(l.at(l.first).bits))
	}
	if l.first == l.next {
		l.bits.drop(l.bits.base + uint32(len(l.bits.items)))
		l.deps.drop(l.deps.base + uint32(len(l.deps.items)))
	} else {
		l.bits.drop(l.at(l.first).place)
		l.deps.drop(l.at(l.first).deps)
	}
	return later
}

// depend tells what a message waits for; there are no more than maxDependencies.
func (l *outLane) depend(m *outMessage, deps []dependency) {
	m.known, m.count, m.deps = true, uint8(len(deps)), l.deps.add(deps...)
}

// dependsLike tells that a message waits for the same as another one.
func (m *outMessage) dependsLike(other *outMessage) {
	m.known, m.count, m.deps = true, other.count, other.deps
}

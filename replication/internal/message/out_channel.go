package message

import (
	"github.com/arche-replicate/arche-replicate/delta"
	"github.com/arche-replicate/arche-replicate/replication/internal/clock"
	"github.com/arche-replicate/arche-replicate/replication/internal/wire"
)

// Reliable messages go in channels. In each of them they are numbered, sent until acknowledged, and handed over in the order
// of their numbers.

const (

	// MaxQueuedBytes bounds their size, at both ends.
	MaxQueuedBytes = 64 << 10
	// stuckTimeouts is after how many timeouts a receiver is told again what a message waits for.
	stuckTimeouts = 4
	// minQueued is the least size of a ring of messages.
	minQueued = 16
	// maxBackoff bounds how much longer than the timeout, as a power of two, messages wait while there are no acks.
	maxBackoff = 4
	// MaxProbes is how many messages are sent again at a time while there are no acks.
	MaxProbes = 8
)

// An OutChannel sends reliable messages. It knows of no world and no packets: put fills them, ack empties the channel.
type OutChannel struct {
	ring   []outMessage // by id modulo their number, a power of two
	First  uint32       // the first that is not known to be handed over
	Next   uint32       // id of the next message
	Unsent uint32       // the first that was never sent
	bits   fifo[byte]   // of the messages
	deps   fifo[wire.Dependency]

	Size     int // bytes of messages in the ring, and of what is to come
	Expected int // ids that what is to come takes

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

func (l *OutChannel) at(id uint32) *outMessage { return &l.ring[id&uint32(len(l.ring)-1)] }

// expect makes room for a message of at most so many bytes and fragments, or returns false if there is none.
func (l *OutChannel) expect(bytes, fragments int) bool {
	if int(l.Next-l.First)+l.Expected+fragments > wire.MaxQueued || l.Size+bytes > MaxQueuedBytes {
		return false
	}
	l.Expected += fragments
	l.Size += bytes
	return true
}

// cancel gives back the room for a message.
func (l *OutChannel) cancel(bytes, fragments int) {
	l.Expected -= fragments
	l.Size -= bytes
}

// push adds a message, for which there must be room.
func (l *OutChannel) push(number int, tick delta.Tick, data []byte, bits, fragments int) {
	if l.Empty() {
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
func (l *OutChannel) add(m *outMessage, data []byte) {
	l.Size += len(data)
	if n := len(l.ring); int(l.Next-l.First) == n {
		ring := make([]outMessage, max(minQueued, 2*n))
		for id := l.First; id != l.Next; id++ {
			ring[id&uint32(len(ring)-1)] = *l.at(id)
		}
		l.ring = ring
	}
	m.place, m.deps = l.bits.add(data...), l.deps.add()
	*l.at(l.Next) = *m
	l.Next++
}

// head returns the message that is to be handed over next, or the last of its fragments; the channel is not empty.
func (l *OutChannel) head() *outMessage {
	id := l.First
	for l.at(id).fragment == wire.MoreFragments {
		id++
	}
	return l.at(id)
}

// Empty reports whether everything was handed over.
func (l *OutChannel) Empty() bool { return l.First == l.Next }

// begin starts a tick.
func (l *OutChannel) begin(now delta.Tick, trip *clock.RoundTrip) {
	l.now, l.slack, l.timeout, l.expired = now, trip.Slack(), trip.Timeout(), 0
	l.probes = l.backoff == 0 || now-l.probed > l.timeout<<l.backoff
}

// dirty reports whether a message is to be sent now.
func (l *OutChannel) due(m *outMessage) bool {
	switch {
	case m.times == 0:
		return true
	case m.came:
		return false
	case l.heard && l.latest.After(m.sent) && l.latest-m.sent > l.slack:
		return true // packets came that were sent well after it
	case !l.probes || l.now-m.sent <= l.timeout<<l.backoff || l.backoff > 0 && l.expired == MaxProbes:
		return false
	}
	l.expired++
	return true
}

// end ends a tick. While nothing is heard, less and less is sent.
func (l *OutChannel) end() {
	if l.expired > 0 {
		l.probed, l.backoff = l.now, min(l.backoff+1, maxBackoff)
	}
}

// retrySoon notes that the other end is alive: it is asked more often again.
func (l *OutChannel) retrySoon() { l.backoff = min(l.backoff, 1) }

// stuck reports whether a message has been with the receiver for so long that one may ask whether it waits for something that
// won't come: it waits for open states, as far as the sender knows.
func (l *OutChannel) stuck(m *outMessage, open int) bool {
	since := l.now - m.sent
	// What it was told last may have got lost, so it is told again, but seldom.
	return m.came && (open < int(m.wrote) && since > l.timeout || open < int(m.count) && since > stuckTimeouts*l.timeout)
}

// sentNow notes that a message was sent.
func (l *OutChannel) sentNow(id uint32, deps int) {
	m := l.at(id)
	m.sent, m.wrote = l.now, uint8(deps)
	m.times = min(m.times+1, 100)
	if !l.before(id, l.Unsent) {
		l.Unsent = id + 1
	}
}

// before compares ids, which wrap.
func (l *OutChannel) before(id, other uint32) bool { return int32(id-other) < 0 }

// acceptable reports whether an honest receiver can have said that: nothing came that was never sent.
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

// ack takes what the receiver said, which must be acceptable. It reports whether that tells of packets later than what it said
// before.
func (l *OutChannel) ack(a *wire.ChannelAck, now delta.Tick) (later bool) {
	next := wire.Extend16(a.Next, l.First)
	if l.before(next, l.First) && l.First-next > wire.MaxQueued {
		return false // from long ago
	}
	for id := l.First; id != l.Unsent; id++ {
		handed := l.before(id, next)
		if m := l.at(id); handed || a.Has(id-next) {
			m.came = true
		}
	}
	if received := delta.Tick(wire.Extend16(a.Received, uint32(now))); !received.After(now) && (!l.heard || received.After(l.latest)) {
		l.latest, l.heard, later = received, true, true
	}
	l.backoff = 0
	for ; l.before(l.First, next); l.First++ {
		l.Size -= wire.ByteSize(int(l.at(l.First).bits))
	}
	if l.First == l.Next {
		l.bits.drop(l.bits.base + uint32(len(l.bits.items)))
		l.deps.drop(l.deps.base + uint32(len(l.deps.items)))
	} else {
		l.bits.drop(l.at(l.First).place)
		l.deps.drop(l.at(l.First).deps)
	}
	return later
}

// depend tells what a message waits for; there are no more than maxDependencies.
func (l *OutChannel) depend(m *outMessage, deps []wire.Dependency) {
	m.known, m.count, m.deps = true, uint8(len(deps)), l.deps.add(deps...)
}

// dependsLike tells that a message waits for the same as another one.
func (m *outMessage) dependsLike(other *outMessage) {
	m.known, m.count, m.deps = true, other.count, other.deps
}

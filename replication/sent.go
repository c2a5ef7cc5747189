package replication

import "github.com/arche-replicate/arche-replicate/delta"

// maxInFlight is how many packets to a peer may await their acknowledgement. Beyond it
// nothing more is sent: what is unresolved then is lost, or the peer can't keep up.
const maxInFlight = 1024

// recordKind says what a packet carried of a slot.
type recordKind uint8

const (
	recordState   recordKind = iota // the whole state, as an update or whole
	recordDespawn                   // that the slot is empty
	recordPart                      // a part of a state too large for a packet
)

// A record is one thing that a packet carried: a slot and a kind.
type record uint32

const recordKindBits = 2

func newRecord(slot int, kind recordKind) record {
	return record(slot)<<recordKindBits | record(kind)
}

func (r record) slot() int        { return int(r >> recordKindBits) }
func (r record) kind() recordKind { return recordKind(r & (1<<recordKindBits - 1)) }

// sentStatus is what is known of the fate of a packet.
type sentStatus uint8

const (
	sentUnused   sentStatus = iota
	sentInFlight            // may still be acknowledged
	sentLost                // taken for lost; an acknowledgement still counts
	sentAcked
)

type sentPacket struct {
	status  sentStatus
	tick    delta.Tick
	records []record

	// Of the part that is all that the packet carries, if its record is of one.
	part     int
	partTick delta.Tick
}

// A sentLog remembers what the latest packets to a peer carried. The records of a
// packet are reused when its place is.
type sentLog struct {
	next   uint32 // sequence of the next packet
	oldest uint32 // no packet before this one is in flight
	ring   []sentPacket
}

func newSentLog(first uint32) sentLog {
	return sentLog{next: first, oldest: first}
}

// at returns the packet with the given sequence, which must be one of the last
// maxInFlight.
func (l *sentLog) at(sequence uint32) *sentPacket {
	return &l.ring[sequence%uint32(len(l.ring))]
}

// full reports whether one more packet would push out one that is in flight.
func (l *sentLog) full() bool { return l.next-l.oldest >= maxInFlight }

// begin returns the place of the next packet, with no records. The log must not be
// full. The ring grows with the number of packets in flight.
func (l *sentLog) begin(tick delta.Tick) *sentPacket {
	if n := uint32(len(l.ring)); n == 0 || l.next-l.oldest >= n {
		grown := make([]sentPacket, max(32, 2*n))
		for s := l.next - n; s != l.next; s++ {
			grown[s%uint32(len(grown))] = l.ring[s%n]
		}
		l.ring = grown
	}
	p := l.at(l.next)
	p.status, p.tick, p.records = sentInFlight, tick, p.records[:0]
	return p
}

// commit counts the packet that begin gave as sent and returns its sequence.
func (l *sentLog) commit() uint32 {
	l.next++
	return l.next - 1
}

// find returns the packet with the given sequence, or nil if none was sent or it is too
// long ago.
func (l *sentLog) find(sequence uint32) *sentPacket {
	age := l.next - 1 - sequence
	if age >= uint32(len(l.ring)) {
		return nil
	}
	if p := l.at(sequence); p.status != sentUnused {
		return p
	}
	return nil
}

// trim moves oldest over the packets that are resolved.
func (l *sentLog) trim() {
	for l.oldest != l.next && l.at(l.oldest).status != sentInFlight {
		l.oldest++
	}
}

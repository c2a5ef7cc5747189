package replication

import "github.com/arche-replicate/arche-replicate/delta"

// maxInFlight is how many packets to a peer may await their acknowledgement. Beyond it
// nothing more is sent: what is unresolved then is lost, or the peer can't keep up.
const maxInFlight = 1024

// recordKind says what a packet carried of some slots.
type recordKind uint8

const (
	recordState   recordKind = iota // the whole state, as an update or whole
	recordDespawn                   // that the slot is empty
	recordPart                      // a part of a state too large for a packet
)

// A record is something that a packet carried of slots of one block.
type record struct {
	mask  uint64
	block uint32
	kind  recordKind
}

// sentStatus is what is known of the fate of a packet.
type sentStatus uint8

const (
	sentUnused   sentStatus = iota
	sentInFlight            // may still be acknowledged
	sentLost                // taken for lost; an acknowledgement still counts
	sentAcked
)

type sentPacket struct {
	status sentStatus
	tick   delta.Tick
	first  uint32 // number of its first record
	count  uint32 // of its records

	// Of the part that is all that the packet carries, if its record is of one.
	part     uint32
	partTick delta.Tick
}

// A sentLog remembers what the latest packets to a peer carried. Their records stand in
// a ring that all packets share.
type sentLog struct {
	next    uint32 // sequence of the next packet
	oldest  uint32 // no packet before this one is in flight
	ring    []sentPacket
	records []record // by number modulo their length
	written uint32   // number of the next record
}

func newSentLog(first uint32) sentLog {
	return sentLog{next: first, oldest: first}
}

// at returns the packet with the given sequence, which must be one of the last
// len(l.ring).
func (l *sentLog) at(sequence uint32) *sentPacket {
	return &l.ring[sequence&uint32(len(l.ring)-1)]
}

// full reports whether one more packet would push out one that is in flight.
func (l *sentLog) full() bool { return l.next-l.oldest >= maxInFlight }

// begin returns the place of the next packet, with no records. The log must not be
// full. The ring grows with the number of packets in flight.
func (l *sentLog) begin(tick delta.Tick) *sentPacket {
	if n := uint32(len(l.ring)); n == 0 || l.next-l.oldest >= n {
		grown := make([]sentPacket, max(32, 2*n))
		for s := l.next - n; s != l.next; s++ {
			grown[s&uint32(len(grown)-1)] = l.ring[s&(n-1)]
		}
		l.ring = grown
	}
	p := l.at(l.next)
	*p = sentPacket{status: sentInFlight, tick: tick, first: l.written}
	return p
}

// add notes what the packet that begin gave carries of slots of a block.
func (l *sentLog) add(p *sentPacket, block int, mask uint64, kind recordKind) {
	if p.count > 0 {
		last := &l.records[(l.written-1)&uint32(len(l.records)-1)]
		if last.block == uint32(block) && last.kind == kind {
			last.mask |= mask
			return
		}
	}
	needed := p.first
	if l.oldest != l.next {
		needed = l.at(l.oldest).first
	}
	if n := uint32(len(l.records)); l.written-needed == n {
		grown := make([]record, max(64, 2*n))
		for i := needed; i != l.written; i++ {
			grown[i&uint32(len(grown)-1)] = l.records[i&(n-1)]
		}
		l.records = grown
	}
	l.records[l.written&uint32(len(l.records)-1)] = record{mask, uint32(block), kind}
	l.written++
	p.count++
}

// record returns the i-th record of a packet.
func (l *sentLog) record(p *sentPacket, i uint32) record {
	return l.records[(p.first+i)&uint32(len(l.records)-1)]
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
	p := l.at(sequence)
	if p.status == sentUnused || l.written-p.first > uint32(len(l.records)) {
		return nil
	}
	return p
}

// sentAgain reports whether a packet after the given one carried the state of a slot.
func (l *sentLog) sentAgain(after uint32, slot int) bool {
	for q := after + 1; q != l.next; q++ {
		p := l.at(q)
		for i := range p.count {
			r := l.record(p, i)
			if r.block == uint32(slot>>6) && r.mask>>(slot&63)&1 != 0 {
				return true
			}
		}
	}
	return false
}

// trim moves oldest over the packets that are resolved, up to the given sequence.
func (l *sentLog) trim(end uint32) {
	for l.oldest != end && l.at(l.oldest).status != sentInFlight {
		l.oldest++
	}
}

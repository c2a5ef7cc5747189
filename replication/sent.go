package replication

import (
	"math/bits"

	"github.com/arche-replicate/arche-replicate/delta"
	"github.com/arche-replicate/arche-replicate/replication/internal/clock"
)

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

// A sentRecord is a record as it is kept, in 12 bytes: there are many.
type sentRecord struct {
	low, high uint32 // halves of the mask
	what      uint32 // block and kind
}

// recordKindBits is how many of the bits of sentRecord.what are of the kind. Blocks take 26.
const recordKindBits = 2

func (r sentRecord) record() record {
	return record{uint64(r.high)<<32 | uint64(r.low), r.what >> recordKindBits, recordKind(r.what & (1<<recordKindBits - 1))}
}

func newRecord(block int, mask uint64, kind recordKind) sentRecord {
	return sentRecord{uint32(mask), uint32(mask >> 32), uint32(block)<<recordKindBits | uint32(kind)}
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
	stream bool   // a copy of one of a stream
	bytes  uint16 // of the packet; 0: it tells nothing about the path
	tick   delta.Tick
	first  uint32 // number of its first record
	count  uint32 // of its records

	// Of the part that is all that the packet carries, if its record is of one.
	part     uint32
	partTick delta.Tick
}

// A sentLog remembers what the latest packets to a peer carried. Their records stand in
// a ring that all packets share. Both rings have room for what awaits its acknowledgement
// and not much more; what was resolved before stays until its place is needed.
type sentLog struct {
	next    uint32       // sequence of the next packet
	oldest  uint32       // no packet before this one is in flight
	ring    []sentPacket // by sequence modulo their number, a power of two
	records []sentRecord // a ring of any length
	place   int          // of the next record in the ring
	written uint32       // number of the next record
	kept    uint32       // how many records before that one are in the ring

	marks  [markedTicks / markTicks]sentMark // by tick / markTicks modulo their number
	marked uint32                            // which of them are valid

	// How much was needed at once, in the ticks since the sizes were last considered.
	ticks       uint8
	mostPackets uint32
	mostRecords uint32
}

// A sentMark tells when the packets of a few ticks were sent, long after the ring has
// forgotten them.
type sentMark struct {
	tick     delta.Tick
	sequence uint32 // of the first packet
}

const (
	markTicks   = 4                // that share a mark
	markedTicks = clock.MaxTimeout // for that long marks tell when a packet was sent
)

const (
	minSentPackets = 32
	minSentRecords = 64
	// resizeTicks is after how many ticks memory that a rare burst took is given back.
	resizeTicks = 64
)

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
	if n := uint32(len(l.ring)); l.next-l.oldest >= n {
		l.resizePackets(max(minSentPackets, 2*n))
	}
	if i := markOf(tick); l.marked>>i&1 == 0 || l.marks[i].tick/markTicks != tick/markTicks {
		l.marks[i] = sentMark{tick, l.next}
		l.marked |= 1 << i
	}
	p := l.at(l.next)
	*p = sentPacket{status: sentInFlight, tick: tick, first: l.written}
	return p
}

// add notes what the packet that begin gave carries of slots of a block.
func (l *sentLog) add(p *sentPacket, block int, mask uint64, kind recordKind) {
	r := newRecord(block, mask, kind)
	if p.count > 0 {
		last := l.stored(l.written - 1)
		if last.what == r.what {
			last.low, last.high = last.low|r.low, last.high|r.high
			return
		}
	}
	l.makeRoom(p, 1)
	l.records[l.place] = r
	if l.place++; l.place == len(l.records) {
		l.place = 0
	}
	l.written++
	l.kept++
	p.count++
}

// addAll notes all that the packet that begin gave carries.
func (l *sentLog) addAll(p *sentPacket, records []sentRecord) {
	l.makeRoom(p, len(records))
	n := copy(l.records[l.place:], records)
	copy(l.records, records[n:])
	if l.place += len(records); l.place >= len(l.records) {
		l.place -= len(l.records)
	}
	l.written += uint32(len(records))
	l.kept += uint32(len(records))
	p.count += uint32(len(records))
}

// makeRoom makes room for n records of a packet, in place of the oldest ones that nobody
// needs or in a larger ring.
func (l *sentLog) makeRoom(p *sentPacket, n int) {
	short := int(l.kept) + n - len(l.records)
	if short <= 0 {
		return
	}
	needed := l.written - p.first
	if l.oldest != l.next {
		needed = l.written - l.at(l.oldest).first
	}
	if missing := int(needed) + n - len(l.records); missing > 0 {
		l.resizeRecords(len(l.records) + max(len(l.records)/8, missing) + minSentRecords)
		short = int(l.kept) + n - len(l.records)
	}
	l.kept -= uint32(max(short, 0))
}

// stored returns the record with the given number, one of the last l.kept.
func (l *sentLog) stored(number uint32) *sentRecord {
	i := l.place - int(l.written-number)
	if i < 0 {
		i += len(l.records)
	}
	return &l.records[i]
}

// record returns the i-th record of a packet.
func (l *sentLog) record(p *sentPacket, i uint32) record { return l.stored(p.first + i).record() }

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
	if p.status == sentUnused || l.written-p.first > l.kept {
		return nil
	}
	return p
}

func markOf(tick delta.Tick) uint { return uint(tick/markTicks) % (markedTicks / markTicks) }

// sentAt returns a tick not long before the packet with the given sequence was sent, if
// that is one of the last markedTicks before tick now.
func (l *sentLog) sentAt(sequence uint32, now delta.Tick) (delta.Tick, bool) {
	if int32(sequence-l.next) >= 0 {
		return 0, false
	}
	for back := delta.Tick(0); back < markedTicks; back += markTicks {
		i := markOf(now - back)
		m := &l.marks[i]
		if l.marked>>i&1 != 0 && m.tick/markTicks == (now-back)/markTicks && int32(sequence-m.sequence) >= 0 {
			return m.tick, true
		}
	}
	return 0, false
}

// trim ends a tick: it moves oldest over the packets that are resolved, up to the given
// sequence. No packet may be open.
func (l *sentLog) trim(end uint32) {
	if l.oldest != l.next {
		l.mostPackets = max(l.mostPackets, l.next-l.oldest)
		l.mostRecords = max(l.mostRecords, l.written-l.at(l.oldest).first)
	}
	for l.oldest != end && l.at(l.oldest).status != sentInFlight {
		l.oldest++
	}
	if l.ticks++; l.ticks == resizeTicks {
		l.shrink()
		l.ticks, l.mostPackets, l.mostRecords = 0, 0, 0
	}
}

// shrink gives back what was not needed lately, but for some slack: a ring that is taken
// for too large is so by far, so that small ups and downs cost nothing.
func (l *sentLog) shrink() {
	packets := max(minSentPackets, uint32(1)<<bits.Len32(l.mostPackets+l.mostPackets/8))
	if packets < uint32(len(l.ring)) {
		l.resizePackets(packets)
	}
	records := max(minSentRecords, int(l.mostRecords+l.mostRecords/16))
	if records+records/8 < len(l.records) {
		l.resizeRecords(records)
	}
}

// resizePackets makes the ring one of n packets. The latest ones stay.
func (l *sentLog) resizePackets(n uint32) {
	ring := make([]sentPacket, n)
	for s := l.next - min(n, uint32(len(l.ring))); s != l.next; s++ {
		ring[s&(n-1)] = *l.at(s)
	}
	l.ring = ring
}

// resizeRecords makes the ring one of n records. The latest ones stay.
func (l *sentLog) resizeRecords(n int) {
	records := make([]sentRecord, n)
	kept := min(int(l.kept), n)
	for i := range kept {
		records[i] = *l.stored(l.written - uint32(kept-i))
	}
	l.records, l.kept, l.place = records, uint32(kept), kept%n
}

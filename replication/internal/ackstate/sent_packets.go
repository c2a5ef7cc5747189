package ackstate

import (
	"math/bits"

	"github.com/arche-replicate/arche-replicate/delta"
	"github.com/arche-replicate/arche-replicate/replication/internal/baseline"
	"github.com/arche-replicate/arche-replicate/replication/internal/clock"
)

// MaxInFlight is how many packets to a peer may await their acknowledgement. Beyond it
// nothing more is sent: what is unresolved then is lost, or the peer can't keep up.
const MaxInFlight = 1024

// SentStatus is what is known of the fate of a packet.
type SentStatus uint8

const (
	SentUnused   SentStatus = iota
	SentInFlight            // may still be acknowledged
	SentLost                // taken for lost; an acknowledgement still counts
	SentAcked
)

// A SentPacket is a packet whose fate still matters, or the place of one.
type SentPacket struct {
	Status SentStatus
	Shared bool   // a copy of one of a stream
	Bytes  uint16 // of the packet; 0: it tells nothing about the path
	Tick   delta.Tick
	first  uint32 // number of its first record
	Count  uint32 // of its records

	// Of the part that is all that the packet carries, if its record is of one.
	Part     uint32
	PartTick delta.Tick
}

// A SentLog remembers what the latest packets to a peer carried. Their records stand in
// a ring that all packets share. Both rings have room for what awaits its acknowledgement
// and not much more; what was resolved before stays until its place is needed.
type SentLog struct {
	Next    uint32                // sequence of the next packet
	Oldest  uint32                // no packet before this one is in flight
	Ring    []SentPacket          // by sequence modulo their number, a power of two
	Records []baseline.SentRecord // a ring of any length
	place   int                   // of the next record in the ring
	Written uint32                // number of the next record
	kept    uint32                // how many records before that one are in the ring

	marks  [MarkedTicks / MarkTicks]sentMark // by tick / MarkTicks modulo their number
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
	MarkTicks   = 4                // that share a mark
	MarkedTicks = clock.MaxTimeout // for that long marks tell when a packet was sent
)

const (
	minSentPackets = 32
	minSentRecords = 64
	// ResizeTicks is after how many ticks memory that a rare burst took is given back.
	ResizeTicks = 64
)

// NewSentLog returns an empty log. Its first packet has the given sequence.
func NewSentLog(first uint32) SentLog {
	return SentLog{Next: first, Oldest: first}
}

// At returns the packet with the given sequence, which must be one of the last
// len(l.ring).
func (l *SentLog) At(sequence uint32) *SentPacket {
	return &l.Ring[sequence&uint32(len(l.Ring)-1)]
}

// Full reports whether one more packet would push out one that is in flight.
func (l *SentLog) Full() bool { return l.Next-l.Oldest >= MaxInFlight }

// Begin returns the place of the next packet, with no records. The log must not be
// full. The ring grows with the number of packets in flight.
func (l *SentLog) Begin(tick delta.Tick) *SentPacket {
	if n := uint32(len(l.Ring)); l.Next-l.Oldest >= n {
		l.resizePackets(max(minSentPackets, 2*n))
	}
	if i := markOf(tick); l.marked>>i&1 == 0 || l.marks[i].tick/MarkTicks != tick/MarkTicks {
		l.marks[i] = sentMark{tick, l.Next}
		l.marked |= 1 << i
	}
	p := l.At(l.Next)
	*p = SentPacket{Status: SentInFlight, Tick: tick, first: l.Written}
	return p
}

// Add notes what the packet that begin gave carries of slots of a block.
func (l *SentLog) Add(p *SentPacket, block int, mask uint64, kind baseline.RecordKind) {
	r := baseline.NewRecord(block, mask, kind)
	if p.Count > 0 {
		last := l.stored(l.Written - 1)
		if last.What == r.What {
			last.Low, last.High = last.Low|r.Low, last.High|r.High
			return
		}
	}
	l.makeRoom(p, 1)
	l.Records[l.place] = r
	if l.place++; l.place == len(l.Records) {
		l.place = 0
	}
	l.Written++
	l.kept++
	p.Count++
}

// AddAll notes all that the packet that begin gave carries.
func (l *SentLog) AddAll(p *SentPacket, records []baseline.SentRecord) {
	l.makeRoom(p, len(records))
	n := copy(l.Records[l.place:], records)
	copy(l.Records, records[n:])
	if l.place += len(records); l.place >= len(l.Records) {
		l.place -= len(l.Records)
	}
	l.Written += uint32(len(records))
	l.kept += uint32(len(records))
	p.Count += uint32(len(records))
}

// makeRoom makes room for n records of a packet, in place of the oldest ones that nobody
// needs or in a larger ring.
func (l *SentLog) makeRoom(p *SentPacket, n int) {
	short := int(l.kept) + n - len(l.Records)
	if short <= 0 {
		return
	}
	needed := l.Written - p.first
	if l.Oldest != l.Next {
		needed = l.Written - l.At(l.Oldest).first
	}
	if missing := int(needed) + n - len(l.Records); missing > 0 {
		l.resizeRecords(len(l.Records) + max(len(l.Records)/8, missing) + minSentRecords)
		short = int(l.kept) + n - len(l.Records)
	}
	l.kept -= uint32(max(short, 0))
}

// stored returns the record with the given number, one of the last l.kept.
func (l *SentLog) stored(number uint32) *baseline.SentRecord {
	i := l.place - int(l.Written-number)
	if i < 0 {
		i += len(l.Records)
	}
	return &l.Records[i]
}

// Record returns the i-th record of a packet.
func (l *SentLog) Record(p *SentPacket, i uint32) baseline.Record {
	return l.stored(p.first + i).Record()
}

// Commit counts the packet that begin gave as sent and returns its sequence.
func (l *SentLog) Commit() uint32 {
	l.Next++
	return l.Next - 1
}

// Find returns the packet with the given sequence, or nil if none was sent or it is too
// long ago.
func (l *SentLog) Find(sequence uint32) *SentPacket {
	age := l.Next - 1 - sequence
	if age >= uint32(len(l.Ring)) {
		return nil
	}
	p := l.At(sequence)
	if p.Status == SentUnused || l.Written-p.first > l.kept {
		return nil
	}
	return p
}

func markOf(tick delta.Tick) uint { return uint(tick/MarkTicks) % (MarkedTicks / MarkTicks) }

// SentAt returns a tick not long before the packet with the given sequence was sent, if
// that is one of the last MarkedTicks before tick now.
func (l *SentLog) SentAt(sequence uint32, now delta.Tick) (delta.Tick, bool) {
	if int32(sequence-l.Next) >= 0 {
		return 0, false
	}
	for back := delta.Tick(0); back < MarkedTicks; back += MarkTicks {
		i := markOf(now - back)
		m := &l.marks[i]
		if l.marked>>i&1 != 0 && m.tick/MarkTicks == (now-back)/MarkTicks && int32(sequence-m.sequence) >= 0 {
			return m.tick, true
		}
	}
	return 0, false
}

// Trim ends a tick: it moves oldest over the packets that are resolved, up to the given
// sequence. No packet may be open.
func (l *SentLog) Trim(end uint32) {
	if l.Oldest != l.Next {
		l.mostPackets = max(l.mostPackets, l.Next-l.Oldest)
		l.mostRecords = max(l.mostRecords, l.Written-l.At(l.Oldest).first)
	}
	for l.Oldest != end && l.At(l.Oldest).Status != SentInFlight {
		l.Oldest++
	}
	if l.ticks++; l.ticks == ResizeTicks {
		l.shrink()
		l.ticks, l.mostPackets, l.mostRecords = 0, 0, 0
	}
}

// shrink gives back what was not needed lately, but for some slack: a ring that is taken
// for too large is so by far, so that small ups and downs cost nothing.
func (l *SentLog) shrink() {
	packets := max(minSentPackets, uint32(1)<<bits.Len32(l.mostPackets+l.mostPackets/8))
	if packets < uint32(len(l.Ring)) {
		l.resizePackets(packets)
	}
	records := max(minSentRecords, int(l.mostRecords+l.mostRecords/16))
	if records+records/8 < len(l.Records) {
		l.resizeRecords(records)
	}
}

// resizePackets makes the ring one of n packets. The latest ones stay.
func (l *SentLog) resizePackets(n uint32) {
	ring := make([]SentPacket, n)
	for s := l.Next - min(n, uint32(len(l.Ring))); s != l.Next; s++ {
		ring[s&(n-1)] = *l.At(s)
	}
	l.Ring = ring
}

// resizeRecords makes the ring one of n records. The latest ones stay.
func (l *SentLog) resizeRecords(n int) {
	records := make([]baseline.SentRecord, n)
	kept := min(int(l.kept), n)
	for i := range kept {
		records[i] = *l.stored(l.Written - uint32(kept-i))
	}
	l.Records, l.kept, l.place = records, uint32(kept), kept%n
}

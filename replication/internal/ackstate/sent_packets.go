package ackstate

import (
	"math/bits"

	"github.com/arche-replicate/arche-replicate/delta"
	"github.com/arche-replicate/arche-replicate/replication/internal/arrival"
	"github.com/arche-replicate/arche-replicate/replication/internal/baseline"
	"github.com/arche-replicate/arche-replicate/replication/internal/clock"
	"github.com/arche-replicate/arche-replicate/replication/internal/wire"
)

// MaxInFlight is how many packets to a peer may await their acknowledgement. Beyond that nothing is
// sent: the packets are lost, or the peer can't keep up.
const MaxInFlight = 1024

// SentStatus is what is known about the fate of a packet.
type SentStatus uint8

const (
	SentUnused   SentStatus = iota
	SentInFlight            // not resolved yet
	SentLost                // counts as lost; a late acknowledgement is still accepted
	SentAcked
)

// A SentPacket is a packet whose fate still matters, or an unused place for one.
type SentPacket struct {
	Status SentStatus
	Apart  bool            // its slots are not in the reference of later packets
	Form   wire.HeaderForm // of a copy of a shared packet
	later  bool            // a packet before it had records
	Bytes  uint16          // of the packet; 0: congestion control ignores it
	part   uint16          // if it carries nothing but a part of a large state, the number of the part
	Tick   delta.Tick
	first  uint32 // number of its first record in the ring, or of the next one if it has none there
	Count  uint32 // of its records
	of     uint32 // tick of a large state, or place of the first of the shared records

	shared *baseline.SharedRecords // of a copy of a shared packet
}

// SetPart notes that the packet carries nothing but the part with a number, of a large state of a tick.
func (p *SentPacket) SetPart(number int, of delta.Tick) { p.part, p.of = uint16(number), uint32(of) }

// A SentLog remembers what the latest packets to a peer carried. Their records are in a ring, except
// those of copies of shared packets, to which it refers. Both rings have room for what awaits its
// acknowledgement and little more; older entries stay until their place is needed.
type SentLog struct {
	Next    uint32                // sequence of the next packet
	Oldest  uint32                // no packet before it is in flight
	Ring    []SentPacket          // by sequence modulo their number, a power of two
	Records []baseline.SentRecord // a ring of any length
	place   int                   // of the next record in the ring
	written uint32                // number of the next record
	kept    uint32                // how many of the records before that one the ring still has
	wrote   bool                  // a packet had records

	alike uint8 // the latest packets that were sent with the present send interval, counted up to wire.ShortReach
	even  uint8 // of these, the latest each of which is an interval after the one before it, but for the first

	resolved uint32 // no packet from Oldest on and before this one is in flight

	gaps Gaps // memory of findGaps

	marks  [markedTicks / markTicks]sentMark // by tick / markTicks modulo their number
	marked uint32                            // bits of the valid ones

	// The most that was needed at once, in the ticks since the sizes were last considered.
	ticks       uint8
	mostPackets uint16
	mostRecords uint32
}

// A sentMark remembers when the packets of a few ticks were sent, long after the ring has forgotten
// them.
type sentMark struct {
	tick     delta.Tick
	sequence uint32 // of the first packet
}

const (
	markTicks   = 4                // ticks that share a mark
	markedTicks = clock.MaxTimeout // ticks for which marks are kept
)

const (
	minSentPackets = 32
	minSentRecords = 64
	// ResizeTicks is the number of ticks after which memory that a rare burst took is given back.
	ResizeTicks = 64
)

// NewSentLog returns an empty log. Its first packet has the given sequence.
func NewSentLog(first uint32) SentLog { return SentLog{Next: first, Oldest: first, resolved: first} }

// follows reports whether a tick is a send interval after that of the last packet.
func (l *SentLog) follows(tick, interval delta.Tick) bool {
	return tick == l.At(l.Next-1).Tick+interval
}

// form returns the shortest form of the header of a next packet of tick now for a client that has the packet with a
// sequence and tick. That one, and any later one, shows it the interval, and the tick if that is implied.
func (l *SentLog) form(sequence uint32, at, now, interval delta.Tick) wire.HeaderForm {
	switch back := l.Next - sequence; {
	case back > uint32(l.alike):
		return wire.HeaderLong
	case back <= uint32(l.even) && l.follows(now, interval):
		return wire.HeaderImplied
	case now-at > wire.ShortTicks:
		return wire.HeaderLong
	}
	return wire.HeaderShort
}

// At returns the packet with the given sequence, which must be one of the last len(l.Ring).
func (l *SentLog) At(sequence uint32) *SentPacket {
	return &l.Ring[sequence&uint32(len(l.Ring)-1)]
}

// moreSince reports whether more than n packets were sent from a tick on, as far as the log remembers them.
func (l *SentLog) moreSince(at delta.Tick, n uint32) bool {
	sent := l.findEarlier(l.Next - 1 - n)
	return sent != nil && !sent.Tick.Before(at)
}

// Full reports whether one more packet would overwrite one that is in flight.
func (l *SentLog) Full() bool { return l.Next-l.Oldest >= MaxInFlight }

// Begin returns the place of the next packet, without records. The log must not be full. The ring
// grows with the number of packets in flight.
func (l *SentLog) Begin(tick delta.Tick) *SentPacket {
	if n := uint32(len(l.Ring)); l.Next-l.Oldest >= n {
		l.resizePackets(max(minSentPackets, 2*n))
	}
	if i := markOf(tick); l.marked>>i&1 == 0 || l.marks[i].tick/markTicks != tick/markTicks {
		l.marks[i] = sentMark{tick, l.Next}
		l.marked |= 1 << i
	}
	p := l.At(l.Next)
	l.endUse(l.Next - uint32(len(l.Ring)))
	*p = SentPacket{Status: SentInFlight, Tick: tick, first: l.written, later: l.wrote}
	return p
}

// Add records that the packet from Begin carries slots of a block.
func (l *SentLog) Add(p *SentPacket, block int, mask uint64, kind baseline.RecordKind) {
	r := baseline.NewRecord(block, mask, kind)
	if p.Count > 0 {
		last := l.stored(l.written - 1)
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
	l.written++
	l.kept++
	p.Count++
	l.wrote = true
}

// Share records that the packet from Begin is a copy of a shared one, and carries a range of shared records. The log
// uses these until it has forgotten all of the packets in a row that do.
func (l *SentLog) Share(p *SentPacket, records *baseline.SharedRecords, first, end int) {
	if l.At(l.Next-1).shared != records {
		records.Use()
	}
	p.shared, p.of, p.Count = records, uint32(first), uint32(end-first)
	l.wrote = l.wrote || p.Count > 0
}

// endUse is called when the log forgets a packet. It ends the use of shared records, if that was the last one in a row.
func (l *SentLog) endUse(sequence uint32) {
	shared := l.At(sequence).shared
	if shared != nil && (sequence+1 == l.Next || l.At(sequence+1).shared != shared) {
		shared.Release()
	}
}

// clear forgets all packets, at the end of a session.
func (l *SentLog) clear() {
	for s := l.Next - uint32(len(l.Ring)); s != l.Next; s++ {
		l.endUse(s)
	}
	*l = SentLog{}
}

// makeRoom makes room for n records of a packet: it overwrites the oldest ones that are no longer
// needed, or grows the ring.
func (l *SentLog) makeRoom(p *SentPacket, n int) {
	short := int(l.kept) + n - len(l.Records)
	if short <= 0 {
		return
	}
	needed := l.written - p.first
	if l.Oldest != l.Next {
		needed = l.written - l.At(l.Oldest).first
	}
	if missing := int(needed) + n - len(l.Records); missing > 0 {
		l.resizeRecords(len(l.Records) + max(len(l.Records)/8, missing) + minSentRecords)
		short = int(l.kept) + n - len(l.Records)
	}
	l.kept -= uint32(max(short, 0))
}

// stored returns the record with the given number, one of the last l.kept.
func (l *SentLog) stored(number uint32) *baseline.SentRecord {
	i := l.place - int(l.written-number)
	if i < 0 {
		i += len(l.Records)
	}
	return &l.Records[i]
}

// Record returns the i-th record of a packet.
func (l *SentLog) Record(p *SentPacket, i uint32) baseline.Record {
	if p.shared != nil {
		return p.shared.List[p.of+i].Record()
	}
	return l.stored(p.first + i).Record()
}

// hasState reports whether a packet has a state of a slot.
func (l *SentLog) hasState(p *SentPacket, slot int) bool {
	for i := range p.Count {
		r := l.Record(p, i)
		if int(r.Block) == slot>>6 && r.Kind == baseline.RecordState && r.Mask>>(slot&63)&1 != 0 {
			return true
		}
	}
	return false
}

// Commit counts the packet from Begin as sent, with a send interval, and returns its sequence.
func (l *SentLog) Commit(interval delta.Tick) uint32 {
	if !l.follows(l.At(l.Next).Tick, interval) {
		l.even = 0
	}
	l.even, l.alike = min(l.even+1, wire.ShortReach), min(l.alike+1, wire.ShortReach)
	l.Next++
	return l.Next - 1
}

// Find returns the packet with the given sequence. It returns nil if none was sent, or if it was
// forgotten.
func (l *SentLog) Find(sequence uint32) *SentPacket {
	age := l.Next - 1 - sequence
	if age >= uint32(len(l.Ring)) {
		return nil
	}
	p := l.At(sequence)
	if p.Status == SentUnused || p.shared == nil && l.written-p.first > l.kept {
		return nil
	}
	return p
}

// findEarlier is Find for a time at which the next packet may have been begun already, in the place of the oldest.
func (l *SentLog) findEarlier(sequence uint32) *SentPacket {
	if l.Next-sequence >= uint32(len(l.Ring)) {
		return nil
	}
	return l.Find(sequence)
}

func markOf(tick delta.Tick) uint { return uint(tick/markTicks) % (markedTicks / markTicks) }

// sentAt returns a tick shortly before the packet with the given sequence was sent, if that was in
// the last markedTicks before tick now.
func (l *SentLog) sentAt(sequence uint32, now delta.Tick) (delta.Tick, bool) {
	if int32(sequence-l.Next) >= 0 {
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

// firstInFlight returns the sequence of the first packet in flight, or Next if there is none.
func (l *SentLog) firstInFlight() (sequence uint32) {
	if int32(l.resolved-l.Oldest) < 0 {
		l.resolved = l.Oldest
	}
	for l.resolved != l.Next && l.At(l.resolved).Status != SentInFlight {
		l.resolved++
	}
	return l.resolved
}

// wroteBefore reports whether any packet before one that is not forgotten, or before the next one, had records.
func (l *SentLog) wroteBefore(sequence uint32) bool {
	if sequence == l.Next {
		return l.wrote
	}
	return l.At(sequence).later
}

// lastBefore returns the sequence of the last packet from before a tick that trim can reach, and none from the given
// sequence on.
func (l *SentLog) lastBefore(at delta.Tick, end uint32) uint32 {
	last := l.Oldest
	for int32(end-last) > 1 && l.At(last).Status != SentInFlight && l.At(last+1).Tick.Before(at) {
		last++
	}
	return last
}

// trim ends a tick: it moves Oldest over the resolved packets, up to the given sequence. No packet
// may be open.
func (l *SentLog) trim(end uint32) {
	if l.Oldest != l.Next {
		l.mostPackets = max(l.mostPackets, uint16(l.Next-l.Oldest))
		l.mostRecords = max(l.mostRecords, l.written-l.At(l.Oldest).first)
	}
	for int32(end-l.Oldest) > 0 && l.At(l.Oldest).Status != SentInFlight {
		l.Oldest++
	}
	if l.ticks++; l.ticks == ResizeTicks {
		l.shrink()
		l.ticks, l.mostPackets, l.mostRecords = 0, 0, 0
	}
}

// shrink gives back what was not needed lately, but for some slack. A ring shrinks only if it is
// far too large, so that small ups and downs cost nothing.
func (l *SentLog) shrink() {
	packets := max(minSentPackets, uint32(1)<<bits.Len16(l.mostPackets+l.mostPackets/8))
	if packets < uint32(len(l.Ring)) {
		l.resizePackets(packets)
	}
	records := max(minSentRecords, int(l.mostRecords+l.mostRecords/16))
	if 2*records < len(l.Records) {
		l.resizeRecords(records)
	}
}

// resizePackets changes the ring to n packets. It keeps the latest ones.
func (l *SentLog) resizePackets(n uint32) {
	ring := make([]SentPacket, n)
	for s := l.Next - uint32(len(l.Ring)); s != l.Next; s++ {
		if l.Next-s > n {
			l.endUse(s)
			continue
		}
		ring[s&(n-1)] = *l.At(s)
	}
	l.Ring = ring
}

// resizeRecords changes the ring to n records. It keeps the latest ones.
func (l *SentLog) resizeRecords(n int) {
	records := make([]baseline.SentRecord, n)
	kept := min(int(l.kept), n)
	for i := range kept {
		records[i] = *l.stored(l.written - uint32(kept-i))
	}
	l.Records, l.kept, l.place = records, uint32(kept), kept%n
}

// expect adds what is in flight to what the client holds of a slot around tick t.
func (l *SentLog) expect(r *arrival.Around, slot int, t delta.Tick) {
	for q := l.Oldest; q != l.Next; q++ {
		sent := l.At(q)
		switch {
		case sent.Status != SentInFlight || !l.hasState(sent, slot):
		case sent.Tick.After(t):
			r.To, r.After = sent.Tick, true
			return
		case sent.Tick.After(r.From):
			r.From = sent.Tick
		}
	}
}

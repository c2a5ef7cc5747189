package wire

import (
	"github.com/arche-replicate/arche-replicate/bitbuf"
	"github.com/arche-replicate/arche-replicate/delta"
)

// An ack packet acknowledges state packets. Behind the checksum:
//
//	kind 3, words 5 | sequence 16 | words x 32 | missing x (slot 32, low bits of the tick 8)
//
// There are 0 to 30 words, or 32, for which the number is 31. Bit i of the words is for the packet i before
// the sequence, which has the low bits of the newest one that the client received; without words there is
// no sequence. The server completes it to the newest one that it has sent: far fewer than 2^16 packets may
// be in flight. A missing entry names a baseline that the client should have but doesn't. Duplicates and
// late packets do no harm.

const (
	MaxAckWords  = WindowSize / 32
	wordsBits    = 5
	mostWords    = 1<<wordsBits - 1 // stands for all
	sequenceBits = 16
	MaxMissing   = 16
	ageBits      = 8 // of ticks up to delta.MaxAge old
	missingBits  = 32 + ageBits
)

var _ = [1]struct{}{}[delta.MaxAge-(1<<ageBits-1)] // they are equal

// MissingBaseline is the baseline that an update of a slot needed.
type MissingBaseline struct {
	Slot uint32
	Low  uint32 // low bits of its tick
}

// Ack acknowledges state packets, and names missing baselines.
type Ack struct {
	Sequence uint32
	Words    [MaxAckWords]uint32
	Count    int // number of words
	Missing  [MaxMissing]MissingBaseline
	Lacks    int // number of missing baselines
}

// Write appends the ack behind the checksum.
func (a *Ack) Write(w *bitbuf.Writer) {
	if a.Count == mostWords {
		a.Words[a.Count] = 0
		a.Count = MaxAckWords
	}
	w.WriteBits(uint64(KindAck), kindBits)
	w.WriteBits(uint64(min(a.Count, mostWords)), wordsBits)
	if a.Count > 0 {
		w.WriteBits(uint64(uint16(a.Sequence)), sequenceBits)
	}
	for _, x := range a.Words[:a.Count] {
		w.WriteBits(uint64(x), 32)
	}
	for _, m := range a.Missing[:a.Lacks] {
		w.WriteBits(uint64(m.Slot), 32)
		w.WriteBits(uint64(m.Low), ageBits)
	}
}

// Parse reads the body of an ack packet. next is the sequence of the next packet to the client.
func (a *Ack) Parse(body []byte, next uint32) error {
	r := bitbuf.NewReader(body)
	r.ReadBits(kindBits)
	a.Count, a.Sequence = int(r.ReadBits(wordsBits)), 0
	if a.Count == mostWords {
		a.Count = MaxAckWords
	}
	if a.Count > 0 {
		low := uint16(r.ReadBits(sequenceBits))
		a.Sequence = next - 1 - uint32(uint16(next-1)-low)
	}
	for i := range a.Words[:a.Count] {
		a.Words[i] = uint32(r.ReadBits(32))
	}
	a.Lacks = r.Remaining() / missingBits
	if a.Lacks > MaxMissing {
		return ErrMalformed
	}
	for i := range a.Missing[:a.Lacks] {
		a.Missing[i].Slot = uint32(r.ReadBits(32))
		a.Missing[i].Low = uint32(r.ReadBits(ageBits))
	}
	if r.Err() != nil || r.Remaining() > 0 {
		return ErrMalformed
	}
	return nil
}

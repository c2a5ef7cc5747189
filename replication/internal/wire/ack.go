package wire

import (
	"github.com/arche-replicate/arche-replicate/bitbuf"
	"github.com/arche-replicate/arche-replicate/delta"
)

// An ack packet acknowledges state packets. Behind the checksum:
//
//	kind 8 | sequence 32 | words 6 | words x 32 bits | missing 6 | missing x (slot 32, low bits of the tick 8)
//
// Bit i of the words is for the packet i before the sequence. A missing entry names a
// baseline that the client should have but doesn't. Duplicates and late packets do no harm.

const (
	MaxAckWords = WindowSize / 32
	MaxMissing  = 16
)

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
	w.WriteBits(uint64(KindAck), 8)
	w.WriteBits(uint64(a.Sequence), 32)
	w.WriteBits(uint64(a.Count), 6)
	for _, x := range a.Words[:a.Count] {
		w.WriteBits(uint64(x), 32)
	}
	w.WriteBits(uint64(a.Lacks), 6)
	for _, m := range a.Missing[:a.Lacks] {
		w.WriteBits(uint64(m.Slot), 32)
		w.WriteBits(uint64(m.Low), delta.NameBits)
	}
}

// Parse reads the body of an ack packet.
func (a *Ack) Parse(body []byte) error {
	r := bitbuf.NewReader(body)
	r.ReadBits(8)
	a.Sequence = uint32(r.ReadBits(32))
	a.Count = int(r.ReadBits(6))
	if a.Count > MaxAckWords {
		return ErrMalformed
	}
	for i := range a.Words[:a.Count] {
		a.Words[i] = uint32(r.ReadBits(32))
	}
	a.Lacks = int(r.ReadBits(6))
	if a.Lacks > MaxMissing {
		return ErrMalformed
	}
	for i := range a.Missing[:a.Lacks] {
		a.Missing[i].Slot = uint32(r.ReadBits(32))
		a.Missing[i].Low = uint32(r.ReadBits(delta.NameBits))
	}
	if r.Finish() != nil {
		return ErrMalformed
	}
	return nil
}

package replication

import (
	"github.com/arche-replicate/arche-replicate/bitbuf"
	"github.com/arche-replicate/arche-replicate/delta"
)

// An ack packet tells the server which packets came. Behind the checksum:
//
//	kind 8 | sequence 32 | words 6 | words x 32 bits | missing 6 | missing x (slot 32, low bits of the tick 8)
//
// Bit i of the words stands for the packet i before the sequence. A missing entry names
// a baseline that the client should have and has not. All of it can be repeated or come
// late without harm.

const (
	maxAckWords = windowSize / 32
	maxMissing  = 16
)

// A missingBaseline is the baseline that an update of a slot needed.
type missingBaseline struct {
	slot uint32
	low  uint32 // low bits of its tick
}

type ack struct {
	sequence uint32
	words    [maxAckWords]uint32
	count    int // words
	missing  [maxMissing]missingBaseline
	lacks    int // missing baselines
}

// write appends the ack behind the checksum.
func (a *ack) write(w *bitbuf.Writer) {
	w.WriteBits(uint64(kindAck), 8)
	w.WriteBits(uint64(a.sequence), 32)
	w.WriteBits(uint64(a.count), 6)
	for _, x := range a.words[:a.count] {
		w.WriteBits(uint64(x), 32)
	}
	w.WriteBits(uint64(a.lacks), 6)
	for _, m := range a.missing[:a.lacks] {
		w.WriteBits(uint64(m.slot), 32)
		w.WriteBits(uint64(m.low), delta.NameBits)
	}
}

// parse reads the body of an ack packet.
func (a *ack) parse(body []byte) error {
	r := bitbuf.NewReader(body)
	r.ReadBits(8)
	a.sequence = uint32(r.ReadBits(32))
	a.count = int(r.ReadBits(6))
	if a.count > maxAckWords {
		return ErrMalformed
	}
	for i := range a.words[:a.count] {
		a.words[i] = uint32(r.ReadBits(32))
	}
	a.lacks = int(r.ReadBits(6))
	if a.lacks > maxMissing {
		return ErrMalformed
	}
	for i := range a.missing[:a.lacks] {
		a.missing[i].slot = uint32(r.ReadBits(32))
		a.missing[i].low = uint32(r.ReadBits(delta.NameBits))
	}
	if r.Finish() != nil {
		return ErrMalformed
	}
	return nil
}

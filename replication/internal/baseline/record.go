package baseline

// This file defines the records of what a packet carried.

// recordKindBits is the width of the kind in SentRecord.What. Blocks take 26 bits.
const recordKindBits = 2

// A Record is one kind of entry that a packet carried for slots of one block.
type Record struct {
	Mask  uint64
	Block uint32
	Kind  RecordKind
}

// A RecordKind is what a packet carried of a slot.
type RecordKind uint8

const (
	RecordState   RecordKind = iota // the state, as an update or in full
	RecordDespawn                   // that the slot is empty
	RecordPart                      // a part of a state too large for a packet
)

// NewRecord returns the record of the slots of a block that a mask names.
func NewRecord(block int, mask uint64, kind RecordKind) SentRecord {
	return SentRecord{uint32(mask), uint32(mask >> 32), uint32(block)<<recordKindBits | uint32(kind)}
}

// A SentRecord is a Record packed into 12 bytes, since every packet in flight keeps many.
type SentRecord struct {
	Low, High uint32 // halves of the mask
	What      uint32 // block and kind
}

// Record unpacks the record.
func (r SentRecord) Record() Record {
	kind := RecordKind(r.What & (1<<recordKindBits - 1))
	return Record{uint64(r.High)<<32 | uint64(r.Low), r.What >> recordKindBits, kind}
}

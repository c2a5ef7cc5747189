package baseline

// recordKindBits is how many of the bits of SentRecord.What are of the kind. Blocks take 26.
const recordKindBits = 2

// A Record is something that a packet carried of slots of one block.
type Record struct {
	Mask  uint64
	Block uint32
	Kind  RecordKind
}

// RecordKind says what a packet carried of some slots.
type RecordKind uint8

const (
	RecordState   RecordKind = iota // the whole state, as an update or whole
	RecordDespawn                   // that the slot is empty
	RecordPart                      // a part of a state too large for a packet
)

// NewRecord returns the record of slots of a block, of which mask has a bit each.
func NewRecord(block int, mask uint64, kind RecordKind) SentRecord {
	return SentRecord{uint32(mask), uint32(mask >> 32), uint32(block)<<recordKindBits | uint32(kind)}
}

// A SentRecord is a record as it is kept, in 12 bytes: there are many.
type SentRecord struct {
	Low, High uint32 // halves of the mask
	What      uint32 // block and kind
}

func (r SentRecord) Record() Record {
	return Record{uint64(r.High)<<32 | uint64(r.Low), r.What >> recordKindBits, RecordKind(r.What & (1<<recordKindBits - 1))}
}

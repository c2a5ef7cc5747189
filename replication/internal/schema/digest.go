package schema

import "github.com/arche-replicate/arche-replicate/replication/internal/wire"

// Digest returns what is compared of a column, and in how many bits.
func (col *Column) Digest(row []uint32, tick uint32) (digest uint64, bits uint) {
	words := row[col.Word:][:col.Codec.Words()]
	if len(words) == 1 && col.Codec.Bits <= DigestBits {
		return uint64(words[0]), col.Codec.Bits
	}
	h := wire.Mix64(uint64(tick) + wire.Golden64)
	for _, w := range words {
		h = wire.Mix64((h ^ uint64(w)) + wire.Golden64)
	}
	return h >> (64 - DigestBits), DigestBits
}

const DigestBits = 8

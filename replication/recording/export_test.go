package recording

import (
	"bytes"
	"encoding/binary"
	"hash/crc32"
)

// Repair gives the records of a file right checks, as far as their lengths allow that, so that a fuzzer gets beyond
// them.
func Repair(file []byte) []byte {
	file = bytes.Clone(file)
	if len(file) < preamble {
		return file
	}
	copy(file, magic)
	file[len(magic)] = version
	sum := uint32(0)
	for b := file[preamble:]; len(b) > 1; {
		n, w := binary.Uvarint(b[1:])
		if w <= 0 || n > uint64(len(b)) || 1+w+int(n)+checkSize > len(b) {
			break
		}
		if b[0] == kindSegment || b[0] == kindIndex {
			sum = 0
		}
		end := 1 + w + int(n)
		sum = crc32.Update(sum, castagnoli, b[:end])
		binary.LittleEndian.PutUint32(b[end:], sum)
		b = b[end+checkSize:]
	}
	return file
}

package delta

// This file codes Reference fields. A reference names nothing, or something by a dense index and a
// counter of 16 bits, which distinguishes the things that have had the index one after the other.
// Its two words are
//
//	0, 0                 nothing
//	index+1, counter     index < maxReferences
//
// Most references name nothing, or something with a small index that was never used before, so no
// fixed width suits them. A row without a baseline has
//
//	0                    nothing
//	1 q c                something
//
// where q is the class of the index, in truncated unary with limit nearClasses. In the last class,
// c is the index and the counter at full width. In class q < nearClasses, c is the distance of the
// index from the first one of the class, in nearBits+nearStep*q bits, and the counter as a residual
// of order counterOrder.
//
// Against a baseline, a bit shows whether the reference differs, as for a Plain field. If it does,
// the reference follows as above, without its first bit if the baseline names nothing: then it must
// be something.

import "github.com/arche-replicate/arche-replicate/bitbuf"

const (
	// ReferenceBits is the width of a Reference, the bits of the longest one.
	ReferenceBits = 1 + nearClasses + indexBits + counterBits
	// maxReferences is the number of indices that a Reference can name.
	maxReferences = 1 << indexBits

	indexBits    = 30
	counterBits  = 16
	counterOrder = 3
	nearClasses  = 5 // by index: 0..127, ..1151, ..9343, ..74879, ..599167, and all others
	nearBits     = 7
	nearStep     = 3
)

// nearFirst returns the first index of a class. The first class has 128 indices of 7 bits, the next
// one 1024 of 10 bits.
func nearFirst(class uint) uint32 { return (1<<(nearStep*class) - 1) << nearBits / (1<<nearStep - 1) }

// validReference reports whether two words are a reference.
func validReference(words []uint32) bool {
	if words[0] == 0 {
		return words[1] == 0
	}
	return words[0] <= maxReferences && words[1]>>counterBits == 0
}

// reference appends a reference without a baseline.
func (d bitString) reference(words []uint64, index1, counter uint32) bitString {
	if index1 == 0 {
		return d.put(words, 0, 1)
	}
	return d.put(words, 1, 1).something(words, index1-1, counter)
}

// something appends a reference that is known to name something.
func (d bitString) something(words []uint64, index, counter uint32) bitString {
	class := uint(0)
	for class < nearClasses && index >= nearFirst(class+1) {
		class++
	}
	if class == nearClasses {
		d = d.put(words, 0, nearClasses)
		return d.put(words, uint64(index)|uint64(counter)<<indexBits, indexBits+counterBits)
	}
	d = d.put(words, 1<<class, class+1)
	d = d.put(words, uint64(index-nearFirst(class)), nearBits+nearStep*class)
	return d.residual(words, uint64(counter), counterOrder, counterBits)
}

// changedReference appends a reference that differs from that of the baseline.
func (d bitString) changedReference(words []uint64, cur, ref []uint32) bitString {
	if ref[0] == 0 {
		return d.something(words, cur[0]-1, cur[1])
	}
	return d.reference(words, cur[0], cur[1])
}

// readReference reads what reference wrote.
func readReference(r *bitbuf.Reader, dst []uint32) {
	dst[0], dst[1] = 0, 0
	if r.ReadBool() {
		readSomething(r, dst)
	}
}

// readSomething reads what something wrote.
func readSomething(r *bitbuf.Reader, dst []uint32) {
	class := r.ReadUnary(nearClasses)
	if class == nearClasses {
		dst[0] = uint32(r.ReadBits(indexBits)) + 1
		dst[1] = uint32(r.ReadBits(counterBits))
		return
	}
	dst[0] = nearFirst(class) + uint32(r.ReadBits(nearBits+nearStep*class)) + 1
	dst[1] = uint32(readResidual(r, counterOrder, counterBits))
}

// readChangedReference reads what changedReference wrote. A reference that does not differ fails
// the Reader with [ErrCode], since no encoder writes it.
func readChangedReference(r *bitbuf.Reader, dst, ref []uint32) {
	if ref[0] == 0 {
		readSomething(r, dst)
	} else {
		readReference(r, dst)
	}
	if dst[0] == ref[0] && dst[1] == ref[1] {
		r.Fail(ErrCode)
	}
}

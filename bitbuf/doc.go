// Package bitbuf packs unsigned integers of 0 to 64 bits into a byte buffer and takes them out again, beside byte
// strings, bits of other Writers, and numbers in codes of variable length (Uvarint, Exp-Golomb, Rice, truncated unary,
// truncated binary). The bits carry no types, widths or counts: both ends follow the same description.
//
// # Layout
//
// The first bit written is bit 0 of byte 0, the ninth is bit 0 of byte 1, and the low bit of a value goes before its
// high bits. Writing 0b101 in 3 bits, 0b01 in 2 and 0b1100110 in 7 gives
//
//	          byte 0                    byte 1
//	bit   7  6  5  4  3  2  1  0    7  6  5  4  3  2  1  0
//	     [1  1  0][0  1][1  0  1]   0  0  0  0[1  1  0  0]
//	      c2 c1 c0 b1 b0 a2 a1 a0   └ padding ┘ c6 c5 c4 c3
//
// so a bit string is one large little-endian integer. The last byte is padded with zeros, which [Reader.Align] and
// [Reader.Finish] check: the same values have exactly one encoding.
//
// # Errors
//
// Both ends keep the first error and continue harmlessly, so one check after many calls is enough. A [Writer] that
// meets a value which does not fit writes nothing of it and nothing afterwards; [Writer.Rollback] takes back a failed
// attempt. A [Reader] never looks outside its buffer; after its first error it returns only zeros. Arguments that no
// input can cause, such as a width above 64, panic.
//
// # What packet formats add
//
// [Reader.Peek] with [Reader.Skip], [RiceCode] and [TruncatedCode] read and write several short codes at once;
// [Writer.WriteSpan] copies bits that were written before. A value costs one 8-byte store or load, so fields that
// always go together are cheaper merged into one word.
package bitbuf

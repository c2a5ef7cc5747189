// Package bitbuf packs unsigned integers of 0 to 64 bits into a byte buffer
// and takes them out again.
//
// In: values with their widths, byte strings, runs of bits that another Writer
// made, and numbers in codes of variable length (Uvarint, Exp-Golomb, Rice,
// truncated unary, truncated binary). Out: the same in the same order, or an error. The bits
// carry no types, widths or counts: both ends follow the same description.
//
// # Layout
//
// Everything is least significant bit first. The first bit written is bit 0 of
// byte 0, the ninth is bit 0 of byte 1, and the low bit of a value goes before
// its high bits. Writing 0b101 in 3 bits, 0b01 in 2 and 0b1100110 in 7 gives
//
//	          byte 0                    byte 1
//	bit   7  6  5  4  3  2  1  0    7  6  5  4  3  2  1  0
//	     [1  1  0][0  1][1  0  1]   0  0  0  0[1  1  0  0]
//	      c2 c1 c0 b1 b0 a2 a1 a0   └ padding ┘ c6 c5 c4 c3
//
// so a bit string is one large little-endian integer, and a value of up to 64 bits
// at any position is a load, a shift and a mask. The last byte is padded with
// zeros. Padding is checked when it is skipped ([Reader.Align],
// [Reader.Finish]), hence the same values have exactly one encoding.
//
// # Errors
//
// Both ends keep the first error and continue harmlessly, so one check after many
// calls is enough. A [Writer] that meets a value which does not fit writes nothing
// of it and nothing afterwards; [Writer.Rollback] takes back a failed attempt. A
// [Reader] never looks outside its buffer, whatever the input is; after its first
// error it returns only zeros.
//
// Arguments that no input can cause, such as a width above 64, panic.
//
// # Speed
//
// A value costs one 8-byte store or load and no branch that depends on the
// data. Fields that are always written together are cheaper when the caller
// first merges them into one word of up to 64 bits.
package bitbuf

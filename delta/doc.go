// Package delta turns rows of codes into few bits, given rows that the receiver already has, and back. It knows no
// world, no network and no clock.
//
// A row is the codes of a component's fields, quantised to unsigned integers, in the order of a [Layout] that both ends
// share. Its baselines are states that the receiver has acknowledged.
//
//   - [Packed] codes a row against one or two baselines. With two, it extrapolates the state and sends only the error;
//     quaternions are extrapolated as rotations. All arithmetic is in integers, so that both ends agree to the bit.
//   - [Compact] does the same in fewer bits, for one receiver: a [Model] learns what is likely, and a [RangeEncoder]
//     spends few bits on it.
//   - [Names] names the baselines of an update by their age.
//
// Decoding what was encoded gives the row back bit for bit. Decoders are total: any bits give rows of valid codes or
// leave an error in the Reader or [RangeDecoder].
//
// # What servers of many entities add
//
// Package replication uses some types that a single row does not need: [Columns] makes the bits of [Packed] for 64
// slots at once, from a [Block] of rows; [Shift] and [ShiftMeter] adapt the codes to how steady all motion is;
// [Symbols] and [Packed.AddSame] save bits and time where rows rest; [Component.Work], [Component.CompactWidth] and
// [Component.DeviationBits] bound what an update takes.
package delta

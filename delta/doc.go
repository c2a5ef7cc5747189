// Package delta turns rows of codes into few bits, given rows that the receiver
// already has, and back. It knows no world, no network and no clock.
//
// In come codes: a component's fields, quantised to unsigned integers, make a row.
// Out goes a string of bits. What both ends share is a [Layout] and, for each entity,
// baselines: states the receiver has acknowledged.
//
//   - [History] keeps the recent versions of rows, shared by all receivers.
//   - [Packed] codes a row against one or two baseline rows. With two, it extrapolates
//     the state and sends only the error; quaternions are extrapolated as rotations.
//     All arithmetic is in integers, so that both ends agree to the bit.
//   - [Columns] makes the bits of Packed for up to 64 neighbouring slots, component by component.
//   - [Compact] does the same in fewer bits, for one receiver: a [Model] learns what is likely,
//     and a [RangeEncoder] spends few bits on it.
//   - [Names] names the baselines of an update.
//
// For every row, baseline and second baseline, decoding what was encoded gives the row
// back bit for bit. Decoders are total: any bits give rows of valid codes or leave an
// error in the [bitbuf.Reader].
//
// [bitbuf.Reader]: https://pkg.go.dev/github.com/arche-replicate/arche-replicate/bitbuf#Reader
package delta

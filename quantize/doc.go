// Package quantize turns numbers into codes, unsigned integers of a declared width that are small enough to be packed,
// compared and predicted, and codes back into numbers within a stated distance of the originals.
//
// # Choosing a quantiser
//
//	Int            whole numbers of a range   exact, or in equal steps; also wraps: hours, degrees
//	Fixed          a grid of equal steps      the same error everywhere; the usual choice for positions
//	Float          a small float              finer towards zero, for a few bits more than Fixed
//	Half           IEEE 754 binary16          for fields that are halves elsewhere too
//	Angle          a number that wraps        heading, phase, time of day
//	UnitVector     a direction, two codes     octahedral mapping
//	Quat           a rotation, four codes     smallest three
//
// # The contract
//
// A quantiser is a plain value made by its constructor, safe to copy, to compare with == and to use from many
// goroutines. The zero value of a type that has a constructor is not ready for use. Constructors return an error with
// what to change, since ranges and steps often come from struct tags or files. The methods of all types mean the same:
//
//   - Bits is the width of a code, Max the largest code; every code lies in 0..Max.
//   - Encode accepts anything. Input that is no number or lies outside the range is clamped and reported by ok ==
//     false; the code is valid all the same.
//   - Decode accepts anything too. A code that Encode never produces gives the zero value and ok == false: it was
//     damaged or forged. No value has two codes.
//   - Encoding a decoded value gives the code it came from, so servers, relays and clients that pass it on agree. For
//     the constructors ending in 32, and for Half, UnitVector and Quat, this holds even if the value was stored as a
//     float32 in between.
//   - MaxError is the largest |decoded - original|, in the field's units, for input in range, rounding to the field's
//     type included.
//
// # Special input
//
//	            NaN              ±Inf     out of range     -0              tiny (denormal)
//	Int         -                -        nearest bound *  -               -
//	Fixed       low bound *      bound *  nearest bound *  as +0           nearest step
//	Float       0, else low *    bound *  nearest bound *  as +0           nearest step
//	Half        0 *              ±65504 * ±65504 *         as +0           nearest step
//	Angle       0 *              0 *      cannot happen    as +0           nearest step
//	UnitVector  +Z *             +Z *     normalised       as +0           normalised
//	Quat        identity *       identity * normalised     as +0           normalised
//
// An asterisk marks ok == false. For Float, NaN gives zero if the range contains it. For UnitVector and Quat, one bad
// component spoils the entire value, and so does a length of zero.
//
// Values half-way between two codes go to the even one. All machines produce the same codes and the same floats from
// them, whether or not they fuse products and sums.
//
// # Keeping codes
//
// Package replication keeps a code until the number is a margin beyond its cell, so that noise changes nothing:
// [UnitVector.Holds] and [Quat.Holds] report for how long. Without the tag margin that is 1/8 of a step, which adds a
// quarter to the error.
package quantize

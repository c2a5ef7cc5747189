// Package quantize turns numbers into codes and codes back into numbers.
//
// What goes in is one field of a component: an integer, a coordinate, an angle, a direction, a rotation. What comes out
// is a code, an unsigned integer of a declared width, small enough to be packed, compared and predicted as an integer.
// The other end turns the code back into a number that is within a stated distance of the original.
//
// # Choosing a quantiser
//
//	Int, Uint      whole numbers of a range   exact; Int also wraps: hours, degrees
//	IntStep        the same in equal steps    half a step off at most
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
// goroutines. The zero value of a type that has a constructor is not ready for use. Constructors never panic: they
// return an error with what to change, since ranges and steps often come from struct tags or files.
//
//   - Bits is the width of a code, Max the largest code; every code lies in 0..Max.
//   - Encode accepts anything. Input that is no number or lies outside the range is clamped and reported by
//     ok == false, so that the caller can count it; the code is valid all the same.
//   - Decode accepts anything too. A code that Encode never produces gives the zero value and ok == false: it was
//     damaged or forged, and the receiver should drop it. No value has two codes.
//   - Encoding a decoded value always gives the code it came from. So a server that adopts quantised values, a relay
//     and a client that sends back what it received all agree. For the constructors ending in 32, and for the types
//     that promise it, this holds even if the value was stored as a float32 in between.
//   - MaxError is the largest possible |decoded - original| for input that was in range, storage rounding included, of
//     the code that Encode returns. Package replication keeps a recorded code until the number is a margin beyond its
//     cell, 1/8 of a step without the tag margin; that adds a quarter to the error.
//
// # Special input
//
//	            NaN              ±Inf     out of range     -0              tiny (denormal)
//	Int, Uint   -                -        nearest bound *  -               -
//	IntStep     -                -        nearest bound *  -               -
//	Fixed       low bound *      bound *  nearest bound *  as +0           nearest step
//	Float       0, else low *    bound *  nearest bound *  as +0           nearest step
//	Half        0 *              ±65504 * ±65504 *         as +0           nearest step
//	Angle       0 *              0 *      cannot happen    as +0           nearest step
//	UnitVector  +Z *             +Z *     normalised       as +0           normalised
//	Quat        identity *       identity * normalised     as +0           normalised
//
// An asterisk marks ok == false. For Float, NaN gives zero if the range contains it, else the low bound. For UnitVector
// and Quat, one bad component spoils the entire value, and so does a length of zero.
//
// # Rounding and machines
//
// Values half-way between two codes go to the even one. Go may fuse a product and a sum into one operation on some
// machines; every place where that could change a code or a decoded value is written so that it cannot, hence all
// machines produce the same codes and the same floats from them.
package quantize

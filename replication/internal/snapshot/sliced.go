package snapshot

// SlicedBits is the number of bits of a sliced number, a multiple of 3. They suffice for a wait of 2,047 ticks at
// weight 1. Longer waits count the same.
const SlicedBits = 15

// Sliced has a number for each slot of a block, to which weights are added. The numbers are bit-sliced, from the
// lowest bit to the highest: bit i of all of them is in one word. So 64 weights are added with a few operations per
// bit, and the largest numbers are found without sorting, by looking at one bit after the other from the highest down.
// Both are from D. Rinfret, P. O'Neil and E. O'Neil, "Bit-Sliced Index Arithmetic", 2001.
type Sliced [SlicedBits]uint64

// keep sets the numbers of all slots outside the mask to 0.
func (u *Sliced) keep(mask uint64) {
	for i := 0; i < SlicedBits; i += 3 { // one by one, the loop takes more time than what it does
		u[i] &= mask
		u[i+1] &= mask
		u[i+2] &= mask
	}
}

// add adds the weights of the slots in the mask, twice for the slots in double. It returns how many
// bits it has looked at; higher ones did not change.
func (u *Sliced) add(w *SlicedWeights, mask, double uint64) (used int) {
	carry, below := uint64(0), uint64(0)
	i := w.first
	for ; i < w.end; i++ {
		plane := w.Planes[i]
		term := (plane&^double | below&double) & mask
		below = plane
		sum := u[i] ^ term
		u[i], carry = sum^carry, u[i]&term|carry&sum
	}
	if term := below & double & mask; term != 0 || carry != 0 { // i is weightBits at most
		sum := u[i] ^ term
		u[i], carry = sum^carry, u[i]&term|carry&sum
		for i++; i < SlicedBits && carry != 0; i++ {
			u[i], carry = u[i]^carry, u[i]&carry
		}
	}
	if carry != 0 { // overflow: the largest number
		for i := range u {
			u[i] |= carry
		}
	}
	return i
}

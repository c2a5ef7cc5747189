package wire

import "encoding/binary"

// Golden64 and Mix64 are the step and the output function of splitmix64 (after Steele,
// Lea and Flood, "Fast Splittable Pseudorandom Number Generators", 2014), for numbers that
// tests and recordings can repeat.
const Golden64 = 0x9e3779b97f4a7c15

// Mix64 returns a number each of whose bits depends on all bits of z.
func Mix64(z uint64) uint64 {
	z = (z ^ z>>30) * 0xbf58476d1ce4e5b9
	z = (z ^ z>>27) * 0x94d049bb133111eb
	return z ^ z>>31
}

// Random64 returns a number that nobody can guess.
func Random64() uint64 { return random64() }

// MAC returns the first 8 bytes of HMAC-SHA256: nobody can compute it without the key.
func MAC(key *[32]byte, data []byte) uint64 {
	sum := hmacSHA256(key, data)
	return binary.LittleEndian.Uint64(sum[:])
}

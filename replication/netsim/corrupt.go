package netsim

import "math/rand/v2"

const (
	maxFlips  = 8  // bits
	maxExtend = 16 // bytes
)

// corrupt damages a packet in place or in a larger buffer, and returns it. The result always
// differs from the packet, and does not exceed mtu bytes unless mtu is 0.
func corrupt(packet []byte, mtu int, pcg *rand.PCG) []byte {
	kind, amount := pcg.Uint64()>>62, pcg.Uint64()
	room := maxExtend
	if mtu > 0 {
		room = min(room, mtu-len(packet))
	}
	switch {
	case len(packet) == 0 || (kind == 0 && room > 0):
		return extend(packet, 1+int(below(amount, uint64(max(room, 1)))), pcg)
	case kind == 1:
		return packet[:below(amount, uint64(len(packet)))]
	default:
		flip(packet, 1+int(below(amount, maxFlips)), pcg)
		return packet
	}
}

func extend(packet []byte, n int, pcg *rand.PCG) []byte {
	for range n {
		packet = append(packet, byte(pcg.Uint64()>>56))
	}
	return packet
}

// flip inverts up to n bits of a packet that has at least one. Later flips may hit the same bit and
// cancel each other, but none cancels the first.
func flip(packet []byte, n int, pcg *rand.PCG) {
	size := uint64(len(packet)) * 8
	first := below(pcg.Uint64(), size)
	packet[first/8] ^= 1 << (first % 8)
	for range n - 1 {
		if i := below(pcg.Uint64(), size); i != first {
			packet[i/8] ^= 1 << (i % 8)
		}
	}
}

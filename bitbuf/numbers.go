package bitbuf

import "math/bits"

// ZigZag folds signed values into unsigned ones of like size: 0, -1, 1, -2, 2 become 0, 1, 2, 3, 4.
func ZigZag(v int64) uint64 {
	return uint64(v)<<1 ^ uint64(v>>63)
}

// UnZigZag undoes ZigZag.
func UnZigZag(u uint64) int64 {
	return int64(u>>1) ^ -int64(u&1)
}

// Width returns the number of bits that hold every value from 0 to limit: 0 for 0, 8 for 255, 9 for 256.
func Width(limit uint64) uint {
	return uint(bits.Len64(limit))
}

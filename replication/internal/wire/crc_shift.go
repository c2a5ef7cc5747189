package wire

// CRCShift multiplies by a power of x modulo the polynomial; it has the products by nibble. Checksums
// are linear: that of a packet whose end is shared by many peers follows from the checksums of its end
// and of its beginning, multiplied by such a power, without reading the end again (M. Adler, zlib
// 1.2.2.1, crc32_combine).
type CRCShift [8][16]uint32

const (
	crcOne  = 1 << 31 // the polynomial 1: the coefficient of x^0 is the highest bit
	crcPoly = 0x82f63b78
)

// timesX returns a polynomial times x.
func timesX(p uint32) uint32 { return p>>1 ^ -(p&1)&crcPoly }

// crcTimes returns the product of two polynomials.
func crcTimes(a, b uint32) (p uint32) {
	for ; a != 0; a <<= 1 {
		p ^= b & -(a >> 31)
		b = timesX(b)
	}
	return p
}

// crcSquares are the 2^(k+3)-th powers of x, by which 2^k further bytes multiply a checksum.
var crcSquares = func() (squares [16]uint32) {
	p := uint32(crcOne)
	for range 8 {
		p = timesX(p)
	}
	for k := range squares {
		squares[k] = p
		p = crcTimes(p, p)
	}
	return squares
}()

// Set makes s the shift over n bytes, n < 2^16.
func (s *CRCShift) Set(n int) {
	p := uint32(crcOne)
	for k := range crcSquares {
		if n>>k&1 != 0 {
			p = crcTimes(crcSquares[k], p)
		}
	}
	for i := len(s) - 1; i >= 0; i-- { // the highest bit of the highest nibble is the polynomial 1
		nibble := &s[i]
		for bit := 8; bit > 0; bit >>= 1 {
			nibble[bit] = p
			p = timesX(p)
		}
		for j := 1; j < len(nibble); j++ {
			nibble[j] = nibble[j&-j] ^ nibble[j&(j-1)]
		}
	}
}

// Of returns the product. Each packet to each peer needs one, so this is not a loop.
func (s *CRCShift) Of(p uint32) (product uint32) {
	return s[0][p&15] ^ s[1][p>>4&15] ^ s[2][p>>8&15] ^ s[3][p>>12&15] ^
		s[4][p>>16&15] ^ s[5][p>>20&15] ^ s[6][p>>24&15] ^ s[7][p>>28]
}

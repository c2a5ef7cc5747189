package quantize

// The format of a small float.

// SignBits returns 1 if the range has negative numbers, else 0.
func (q *Float) SignBits() uint {
	if q.low < 0 {
		return 1
	}
	return 0
}

// ExponentBits returns the width of the exponent.
func (q *Float) ExponentBits() uint { return uint(q.exponent) }

// MantissaBits returns the width of the mantissa without its implied high bit.
func (q *Float) MantissaBits() uint { return uint(q.mantissa) }

// Bias returns the difference of an exponent e >= 1 from its power of two: the value is 1.mantissa * 2^(e-Bias), and
// 0.mantissa * 2^(1-Bias) for e == 0.
func (q *Float) Bias() int { return int(q.bias) }

package soak

// bits is a bit string, the low bits first.
type bits struct {
	bytes []byte
	n     int
}

func (b *bits) put(v uint64, n int) {
	for i := range n {
		if b.n%8 == 0 {
			b.bytes = append(b.bytes, 0)
		}
		b.bytes[b.n/8] |= byte(v>>i&1) << (b.n % 8)
		b.n++
	}
}

// golomb is exp-Golomb of an order.
func (b *bits) golomb(v uint64, order int) {
	u := v + 1<<order
	q := 0
	for u>>(q+order+1) != 0 {
		q++
	}
	b.put(0, q)
	b.put(1, 1)
	b.put(u, q+order)
}

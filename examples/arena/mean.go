package main

// mean is the mean of values, of which 0 means unknown.
type mean struct {
	sum float64
	n   int
}

func (m *mean) add(value float64) {
	if value != 0 {
		m.sum += value
		m.n++
	}
}

// value is 0 if nothing is known.
func (m *mean) value() float64 {
	if m.n == 0 {
		return 0
	}
	return m.sum / float64(m.n)
}

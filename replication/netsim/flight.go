package netsim

// flight holds the packets in flight, the one that arrives first on top: a binary min-heap by time
// of arrival, then by order of entry.
type flight struct {
	heap    []inFlight
	entered uint64
}

// inFlight is one copy of a packet in flight.
type inFlight struct {
	packet
	arrival instant
	order   uint64
}

func (f *inFlight) before(g *inFlight) bool {
	return f.arrival < g.arrival || (f.arrival == g.arrival && f.order < g.order)
}

func (f *flight) push(p packet, arrival instant) {
	f.heap = append(f.heap, inFlight{p, arrival, f.entered})
	f.entered++
	h := f.heap
	for i := len(h) - 1; i > 0; {
		parent := (i - 1) / 2
		if !h[i].before(&h[parent]) {
			break
		}
		h[i], h[parent] = h[parent], h[i]
		i = parent
	}
}

// pop removes the packet that arrives first; there must be one.
func (f *flight) pop() inFlight {
	h := f.heap
	top, last := h[0], len(h)-1
	h[0] = h[last]
	h[last] = inFlight{} // releases the buffer
	h = h[:last]
	f.heap = h
	for i := 0; ; {
		child := 2*i + 1
		if child >= last {
			break
		}
		if right := child + 1; right < last && h[right].before(&h[child]) {
			child = right
		}
		if !h[child].before(&h[i]) {
			break
		}
		h[i], h[child] = h[child], h[i]
		i = child
	}
	return top
}

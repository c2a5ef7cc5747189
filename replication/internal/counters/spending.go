package counters

// Spending has the totals of the entries that a peer was sent, modulo 2^32.
type Spending struct{ bits, states, full, despawns uint32 }

// Since returns what was spent since an earlier total.
func (s Spending) Since(o Spending) (bits, states, full, despawns int) {
	return int(s.bits - o.bits), int(s.states - o.states), int(s.full - o.full), int(s.despawns - o.despawns)
}

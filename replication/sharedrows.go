package replication

// The states that a client holds of a slot mostly differ in a few rows. Rows of some size are
// shared by all states in which they are the same: what a packet does not change takes neither
// time nor memory, however large it is. Smaller ones are copied, which is cheaper.

// sharedWords is how many words make a row worth sharing.
const sharedWords = 16

// A sharedRow is a row of a component in any number of states of a slot.
type sharedRow struct {
	words     []uint32 // not written any more once a state holds it
	component int
	holders   int  // states
	staged    bool // of the packet in hand: it is not given back before that is done with
}

// A rowPool has the shared rows of a client. A state has the index of a shared row in the place of
// its words.
type rowPool struct {
	rows []*sharedRow
	free [][]uint32 // by component: indices of rows that no state holds
}

// take returns the index of a row of n words of a component. What is in it has no meaning.
func (p *rowPool) take(component, n int) uint32 {
	for len(p.free) <= component {
		p.free = append(p.free, nil)
	}
	if free := p.free[component]; len(free) > 0 {
		i := free[len(free)-1]
		p.free[component] = free[:len(free)-1]
		return i
	}
	p.rows = append(p.rows, &sharedRow{words: make([]uint32, n), component: component})
	return uint32(len(p.rows) - 1)
}

func (p *rowPool) give(i uint32) {
	k := p.rows[i].component
	p.free[k] = append(p.free[k], i)
}

func (p *rowPool) release(i uint32) {
	r := p.rows[i]
	if r.holders--; r.holders == 0 && !r.staged {
		p.give(i)
	}
}

// row returns the state's row of component c, which has n words, or nil if it is not there. It
// must not be written.
func (h *heldState) row(c, n int) []uint32 {
	o := h.shape.offsets[c]
	if o >= 0 {
		return h.words[o : o+n : o+n]
	}
	return h.sharedRow(o)
}

// sharedRow returns the row that is not among the words, by what the shape says of it.
func (h *heldState) sharedRow(offset int) []uint32 {
	if offset == noRow {
		return nil
	}
	return h.shape.rows.rows[h.words[sharedAt-offset]].words
}

// hold makes the state one of a shape with other words.
func (h *heldState) hold(sh *shape, words []uint32) {
	for _, place := range sh.shared {
		sh.rows.rows[words[place]].holders++
	}
	h.release() // now, since some may be the same
	h.shape = sh
	h.words = append(h.words[:0], words...)
}

// release gives up the state's shared rows, before it becomes another one or none.
func (h *heldState) release() {
	if h.shape == nil {
		return
	}
	for _, place := range h.shape.shared {
		h.shape.rows.release(h.words[place])
	}
}

// empty makes the place of a state free for another one.
func (h *heldState) empty() {
	h.release()
	h.shape = nil
}

// merge makes a state, if it has a row of component k, share one that has the same content. So
// that is not compared again.
func (h *heldState) merge(k int, same uint32) {
	o := h.shape.offsets[k]
	if o == noRow || h.words[sharedAt-o] == same {
		return
	}
	h.shape.rows.rows[same].holders++
	h.shape.rows.release(h.words[sharedAt-o])
	h.words[sharedAt-o] = same
}

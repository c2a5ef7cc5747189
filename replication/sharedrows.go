package replication

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
	return h.shape.rows.Rows[h.words[sharedAt-offset]].Words
}

// hold makes the state one of a shape with other words.
func (h *heldState) hold(sh *shape, words []uint32) {
	for _, place := range sh.shared {
		sh.rows.Rows[words[place]].Holders++
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
		h.shape.rows.Release(h.words[place])
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
	h.shape.rows.Rows[same].Holders++
	h.shape.rows.Release(h.words[sharedAt-o])
	h.words[sharedAt-o] = same
}

package replication

// A state that was sent more than once may come from any of the packets that carried it. Whether it is the last one that came
// must be known, since what came from another is still on its way. So the last packet is remembered, for slots of a block that
// it carried together.

// A resent is a packet that carried states of slots of a block not for the first time, and was the last one to do so.
type resent struct {
	low, high uint32 // halves of the mask of slots
	sequence  uint16 // low bits: what can be acknowledged is not that long ago
	block     uint16 // of the chunk
}

func (r *resent) mask() uint64 { return uint64(r.high)<<32 | uint64(r.low) }

// sendAgain notes that states of slots of a block, which are in rareBlock.again now, are carried by the packet with the given
// sequence.
func (t *ackTable) sendAgain(b int, mask uint64, sequence uint32) {
	if mask == 0 {
		return
	}
	ch, block := &t.chunks[b/chunkBlocks], uint16(b%chunkBlocks)
	if ch.resent == nil {
		ch.resent = new([]resent)
	}
	list, n := *ch.resent, 0
	for _, r := range list {
		left := r.mask() & ch.rare[r.block].again
		if r.block == block {
			if left &^= mask; r.sequence == uint16(sequence) {
				mask |= left
				continue
			}
		}
		if left != 0 {
			list[n] = resent{uint32(left), uint32(left >> 32), r.sequence, r.block}
			n++
		}
	}
	if list = list[:n]; n == cap(list) {
		list = append(make([]resent, 0, n+n/8+4), list...) // what a peer takes counts
	}
	list = append(list, resent{uint32(mask), uint32(mask >> 32), uint16(sequence), block})
	*ch.resent = list
}

// sentAfter returns those of the slots of a block, all of them in rareBlock.again, of which the state was sent once more after
// the packet with the given sequence, which carried it too.
func (t *ackTable) sentAfter(b int, mask uint64, sequence uint32) (later uint64) {
	if mask == 0 {
		return 0
	}
	list := *t.chunks[b/chunkBlocks].resent
	for i := range list {
		if r := &list[i]; int(r.block) == b%chunkBlocks && int16(r.sequence-uint16(sequence)) > 0 {
			later |= r.mask() & mask
		}
	}
	return later
}

// shrink gives back what was for states that were sent more than once, where there are none any more.
func (t *ackTable) shrink() {
	for c := range t.chunks {
		ch := &t.chunks[c]
		if ch.resent == nil {
			continue
		}
		var again uint64
		for i := range ch.rare {
			again |= ch.rare[i].again
		}
		if again == 0 {
			ch.resent = nil
		}
	}
}

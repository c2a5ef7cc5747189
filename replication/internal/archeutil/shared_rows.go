package archeutil

// The states that a client holds of a slot mostly differ in a few rows. Rows of some size are
// shared by all states in which they are the same: what a packet does not change takes neither
// time nor memory, however large it is. Smaller ones are copied, which is cheaper.

// SharedWords is how many words make a row worth sharing.
const SharedWords = 16

// A sharedRow is a row of a component in any number of states of a slot.
type sharedRow struct {
	Words     []uint32 // not written any more once a state holds it
	Component int
	Holders   int  // states
	Staged    bool // of the packet in hand: it is not given back before that is done with
}

// A RowPool has the shared rows of a client. A state has the index of a shared row in the place of
// its words.
type RowPool struct {
	Rows []*sharedRow
	Free [][]uint32 // by component: indices of rows that no state holds
}

// Take returns the index of a row of n words of a component. What is in it has no meaning.
func (p *RowPool) Take(component, n int) uint32 {
	for len(p.Free) <= component {
		p.Free = append(p.Free, nil)
	}
	if free := p.Free[component]; len(free) > 0 {
		i := free[len(free)-1]
		p.Free[component] = free[:len(free)-1]
		return i
	}
	p.Rows = append(p.Rows, &sharedRow{Words: make([]uint32, n), Component: component})
	return uint32(len(p.Rows) - 1)
}

func (p *RowPool) Give(i uint32) {
	k := p.Rows[i].Component
	p.Free[k] = append(p.Free[k], i)
}

func (p *RowPool) Release(i uint32) {
	r := p.Rows[i]
	if r.Holders--; r.Holders == 0 && !r.Staged {
		p.Give(i)
	}
}

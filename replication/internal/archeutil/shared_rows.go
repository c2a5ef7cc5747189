package archeutil

// Shared rows. The states that a client holds of a slot mostly differ in a few rows. Larger rows
// are shared by all states in which they are the same, so what a packet does not change takes
// neither time nor memory. Smaller rows are copied, which is cheaper.

// SharedWords is the number of words from which on a row is shared.
const SharedWords = 16

// A sharedRow is a row of a component that any number of states share.
type sharedRow struct {
	Words     []uint32 // not changed once a state holds it
	Component int
	Holders   int  // states that share it
	Staged    bool // used by the packet that is being read, and kept until that is done
}

// A RowPool has the shared rows of a client. A state has a row's index in place of its words.
type RowPool struct {
	Rows []*sharedRow
	Free [][]uint32 // by component: indices of rows that no state holds
}

// Take returns the index of a row of n words of a component, whose contents have no meaning.
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

// give makes a row free that no state holds.
func (p *RowPool) give(i uint32) {
	k := p.Rows[i].Component
	p.Free[k] = append(p.Free[k], i)
}

// Release gives up a state's share of a row.
func (p *RowPool) Release(i uint32) {
	r := p.Rows[i]
	if r.Holders--; r.Holders == 0 && !r.Staged {
		p.give(i)
	}
}

// Unstage ends the use of a row by the packet that was read.
func (p *RowPool) Unstage(i uint32) {
	r := p.Rows[i]
	if r.Staged && r.Holders == 0 {
		p.give(i)
	}
	r.Staged = false
}

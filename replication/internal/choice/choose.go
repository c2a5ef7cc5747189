// Package choice chooses the most urgent of some slots, as many as there is room for. Package sender gives it the slots
// that a peer may be sent, their urgencies, and what their entries cost, and sends what it has chosen.
package choice

import (
	"math/bits"

	"github.com/arche-replicate/arche-replicate/replication/internal/bitset"
	"github.com/arche-replicate/arche-replicate/replication/internal/snapshot"
)

// A Chooser finds the most urgent slots. It is scratch memory that the peers of a worker share.
type Chooser struct {
	Chosen bitset.Set
	Waits  bitset.Set   // slots that must not be chosen; nil: there are none
	blocks []candidates // with candidates
}

// candidates are those of a block.
type candidates struct {
	left  uint64 // neither chosen nor dropped
	dear  uint64 // slots whose entries cost more
	block int32
}

// Prices are estimates of the bits that an entry costs.
type Prices struct {
	Cheap, Dear int
}

// Begin starts an empty choice among slots below n.
func (c *Chooser) Begin(n int) {
	c.Chosen = c.Chosen.Grown(n)
	clear(c.Chosen)
	c.drop()
}

// drop drops all candidates.
func (c *Chooser) drop() { c.blocks = c.blocks[:0] }

// Add adds candidates of a block, except for slots that are chosen already.
func (c *Chooser) Add(b int, mask, dear uint64) {
	if mask &^= c.Chosen[b]; c.Waits != nil {
		mask &^= c.Waits[b]
	}
	if mask != 0 {
		c.blocks = append(c.blocks, candidates{mask, dear, int32(b)})
	}
}

// Any reports whether there are candidates.
func (c *Chooser) Any() bool { return len(c.blocks) > 0 }

// Choose chooses the most urgent candidates, as many as the room in bits allows, and drops the
// others. It returns the estimated cost of the choice. It goes through the bits of the urgencies
// from the highest down: candidates with the bit are more urgent than all others that are left.
// Loops over all blocks have no branches that depend on what they find, which would be predicted badly.
func (c *Chooser) Choose(u *snapshot.Urgency, room int, cost Prices) (used int) {
	defer c.drop()
	for i := int(u.Used) - 1; i >= int(u.Least); i-- {
		plane, all, dear, list := u.Plane(i), 0, 0, c.blocks
		for i := range list {
			k := &list[i]
			top := k.left & plane[k.block]
			all += bits.OnesCount64(top)
			dear += bits.OnesCount64(top & k.dear)
		}
		switch price := (all-dear)*cost.Cheap + dear*cost.Dear; {
		case all == 0:
		case used+price <= room:
			used += price
			for i := range list {
				k := &list[i]
				top := k.left & plane[k.block]
				k.left &^= top
				c.Chosen[k.block] |= top
			}
		default:
			c.narrow(plane)
		}
	}
	return used + c.takeRoundRobin(u, room-used, cost)
}

// narrow drops the candidates that don't have a bit.
func (c *Chooser) narrow(plane bitset.Set) {
	n, list := 0, c.blocks
	for _, k := range list {
		k.left &= plane[k.block]
		list[n] = k
		if k.left != 0 {
			n++
		}
	}
	c.blocks = list[:n]
}

// takeRoundRobin chooses among candidates of equal urgency while there is room, in slot order from u.First on.
func (c *Chooser) takeRoundRobin(u *snapshot.Urgency, room int, cost Prices) (used int) {
	first := 0
	for first < len(c.blocks) && c.blocks[first].block < u.First>>6 {
		first++
	}
	for n := range len(c.blocks) + 1 { // the first block twice: its slots before u.First come last
		i := (first + n) % max(len(c.blocks), 1)
		if i == len(c.blocks) {
			break
		}
		k := &c.blocks[i]
		left := k.left
		if before := uint64(1)<<(u.First&63) - 1; k.block == u.First>>6 && n == 0 {
			left &^= before
		} else if n == len(c.blocks) {
			left &= before
		}
		k.left &^= left
		for ; left != 0; left &= left - 1 {
			if used >= room {
				u.First = k.block<<6 + int32(bits.TrailingZeros64(left))
				return used
			}
			bit := left & -left
			if c.Chosen[k.block] |= bit; k.dear&bit != 0 {
				used += cost.Dear
			} else {
				used += cost.Cheap
			}
		}
	}
	return used
}

package sender

import (
	"math/bits"

	"github.com/arche-replicate/arche-replicate/replication/internal/bitset"
	"github.com/arche-replicate/arche-replicate/replication/internal/snapshot"
	"github.com/mlange-42/arche/ecs"
)

// A chooser finds the most urgent slots. It is scratch memory that the peers of a worker share.
type chooser struct {
	chosen  bitset.Set
	awaited bitset.Set   // slots of what a message waits for
	blocks  []candidates // with candidates

	// For a peer with a weight function of its own.
	weights  []snapshot.SlicedWeights // by block
	asked    []int32                  // slots that the function is called for
	entities []ecs.Entity             // in these slots
	given    []float32                // their weights
}

// candidates are those of a block.
type candidates struct {
	left  uint64 // neither chosen nor dropped
	dear  uint64 // slots whose entries cost more
	block int32
}

// prices are estimates of the bits that an entry costs.
type prices struct {
	cheap, dear int
}

// begin starts an empty choice among slots below n.
func (c *chooser) begin(n int) {
	c.chosen = c.chosen.Grown(n)
	clear(c.chosen)
	c.drop()
}

// drop drops all candidates.
func (c *chooser) drop() { c.blocks = c.blocks[:0] }

// add adds candidates of a block, except for slots that are chosen already.
func (c *chooser) add(b int, mask, dear uint64) {
	if mask &^= c.chosen[b]; mask != 0 {
		c.blocks = append(c.blocks, candidates{mask, dear, int32(b)})
	}
}

// choose chooses the most urgent candidates, as many as the room in bits allows, and drops the
// others. It returns the estimated cost of the choice. It goes through the bits of the urgencies
// from the highest down: candidates with the bit are more urgent than all others that are left.
// Loops over all blocks have no branches that depend on what they find, which would be predicted badly.
func (c *chooser) choose(u *snapshot.Urgency, room int, cost prices) (used int) {
	defer c.drop()
	for i := int(u.Used) - 1; i >= int(u.Least); i-- {
		plane, all, dear, list := u.Plane(i), 0, 0, c.blocks
		for i := range list {
			k := &list[i]
			top := k.left & plane[k.block]
			all += bits.OnesCount64(top)
			dear += bits.OnesCount64(top & k.dear)
		}
		switch price := (all-dear)*cost.cheap + dear*cost.dear; {
		case all == 0:
		case used+price <= room:
			used += price
			for i := range list {
				k := &list[i]
				top := k.left & plane[k.block]
				k.left &^= top
				c.chosen[k.block] |= top
			}
		default:
			c.narrow(plane)
		}
	}
	return used + c.takeRoundRobin(u, room-used, cost)
}

// narrow drops the candidates that don't have a bit.
func (c *chooser) narrow(plane bitset.Set) {
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
func (c *chooser) takeRoundRobin(u *snapshot.Urgency, room int, cost prices) (used int) {
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
			if c.chosen[k.block] |= bit; k.dear&bit != 0 {
				used += cost.dear
			} else {
				used += cost.cheap
			}
		}
	}
	return used
}

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
	awaited bitset.Set // slots of what a message waits for
	blocks  []int32    // with candidates
	left    []uint64   // by block: candidates that are neither chosen nor dropped
	dear    []uint64   // by block: slots whose entries cost more

	// For a peer with a weight function of its own.
	weights  []snapshot.SlicedWeights // by block
	asked    []int32                  // slots that the function is called for
	entities []ecs.Entity             // in these slots
	given    []float32                // their weights
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
func (c *chooser) drop() { c.blocks, c.left, c.dear = c.blocks[:0], c.left[:0], c.dear[:0] }

// add adds candidates of a block, except for slots that are chosen already.
func (c *chooser) add(b int, mask, dear uint64) {
	if mask &^= c.chosen[b]; mask != 0 {
		c.blocks, c.left, c.dear = append(c.blocks, int32(b)), append(c.left, mask), append(c.dear, dear)
	}
}

// choose chooses the most urgent candidates, as many as the room in bits allows, and drops the
// others. It returns the estimated cost of the choice. It goes through the bits of the urgencies
// from the highest down: candidates with the bit are more urgent than all others that are left.
func (c *chooser) choose(u *snapshot.Urgency, room int, cost prices) (used int) {
	defer c.drop()
	for plane := int(u.Used) - 1; plane >= 0; plane-- {
		cheap, dear := 0, 0
		for i, b := range c.blocks {
			top := c.left[i] & u.Blocks[b][plane]
			if costly := top & c.dear[i]; costly != 0 {
				dear += bits.OnesCount64(costly)
				top &^= costly
			}
			if top != 0 {
				cheap += bits.OnesCount64(top)
			}
		}
		switch all := cheap*cost.cheap + dear*cost.dear; {
		case cheap+dear == 0:
		case used+all <= room:
			used += all
			c.take(u, plane)
		default:
			c.narrow(u, plane)
		}
	}
	return used + c.takeRoundRobin(u, room-used, cost)
}

// take chooses the candidates that have a bit.
func (c *chooser) take(u *snapshot.Urgency, plane int) {
	for i, b := range c.blocks {
		top := c.left[i] & u.Blocks[b][plane]
		c.left[i] &^= top
		c.chosen[b] |= top
	}
}

// narrow drops the candidates that don't have a bit.
func (c *chooser) narrow(u *snapshot.Urgency, plane int) {
	n := 0
	for i, b := range c.blocks {
		if top := c.left[i] & u.Blocks[b][plane]; top != 0 {
			c.blocks[n], c.left[n], c.dear[n] = b, top, c.dear[i]
			n++
		}
	}
	c.blocks, c.left, c.dear = c.blocks[:n], c.left[:n], c.dear[:n]
}

// takeRoundRobin chooses among candidates of equal urgency while there is room, in slot order from u.First on.
func (c *chooser) takeRoundRobin(u *snapshot.Urgency, room int, cost prices) (used int) {
	first := 0
	for first < len(c.blocks) && c.blocks[first] < u.First>>6 {
		first++
	}
	for k := range len(c.blocks) + 1 { // the first block twice: its slots before u.First come last
		i := (first + k) % max(len(c.blocks), 1)
		if i == len(c.blocks) {
			break
		}
		b, left := c.blocks[i], c.left[i]
		if before := uint64(1)<<(u.First&63) - 1; b == u.First>>6 && k == 0 {
			left &^= before
		} else if k == len(c.blocks) {
			left &= before
		}
		c.left[i] &^= left
		for ; left != 0; left &= left - 1 {
			if used >= room {
				u.First = b<<6 + int32(bits.TrailingZeros64(left))
				return used
			}
			bit := left & -left
			if c.chosen[b] |= bit; c.dear[i]&bit != 0 {
				used += cost.dear
			} else {
				used += cost.cheap
			}
		}
	}
	return used
}

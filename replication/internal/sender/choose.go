package sender

import (
	"math/bits"

	"github.com/arche-replicate/arche-replicate/replication/internal/bitset"
	"github.com/arche-replicate/arche-replicate/replication/internal/snapshot"
	"github.com/mlange-42/arche/ecs"
)

// Chooser finds the most urgent slots. It is scratch memory, which the peers of a worker share.
type Chooser struct {
	Chosen bitset.Set
	blocks []int32  // with candidates
	left   []uint64 // of these: slots that are neither chosen nor dropped
	dear   []uint64 // of these: slots whose entries cost more

	// Of the weights that a peer's own function says.
	weights  []snapshot.SlicedWeights // by block
	asked    []int32                  // slots that it is asked about
	entities []ecs.Entity             // in them
	given    []float32                // the weights of these
}

// Prices are about how many bits an entry costs.
type Prices struct {
	Cheap, Dear int
}

// Begin makes an empty choice among slots below n.
func (c *Chooser) Begin(n int) {
	c.Chosen = c.Chosen.Grown(n)
	clear(c.Chosen)
	c.drop()
}

// drop ends the list of candidates.
func (c *Chooser) drop() { c.blocks, c.left, c.dear = c.blocks[:0], c.left[:0], c.dear[:0] }

// Add adds candidates of a block.
func (c *Chooser) Add(b int, mask, dear uint64) {
	if mask &^= c.Chosen[b]; mask != 0 {
		c.blocks, c.left, c.dear = append(c.blocks, int32(b)), append(c.left, mask), append(c.dear, dear)
	}
}

// Choose chooses the most urgent of the candidates, as many as so many bits have room for, and
// drops the others. It returns what they cost, about.
func (c *Chooser) Choose(u *Urgency, room int, cost Prices) (used int) {
	defer c.drop()
	for plane := u.Used - 1; plane >= 0; plane-- {
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
		switch all := cheap*cost.Cheap + dear*cost.Dear; {
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

// take chooses all candidates that have a bit.
func (c *Chooser) take(u *Urgency, plane int) {
	for i, b := range c.blocks {
		top := c.left[i] & u.Blocks[b][plane]
		c.left[i] &^= top
		c.Chosen[b] |= top
	}
}

// narrow drops all candidates that don't have a bit.
func (c *Chooser) narrow(u *Urgency, plane int) {
	n := 0
	for i, b := range c.blocks {
		if top := c.left[i] & u.Blocks[b][plane]; top != 0 {
			c.blocks[n], c.left[n], c.dear[n] = b, top, c.dear[i]
			n++
		}
	}
	c.blocks, c.left, c.dear = c.blocks[:n], c.left[:n], c.dear[:n]
}

// takeRoundRobin chooses among candidates that are all as urgent, as long as there is room.
func (c *Chooser) takeRoundRobin(u *Urgency, room int, cost Prices) (used int) {
	first := 0
	for first < len(c.blocks) && int(c.blocks[first]) < u.First>>6 {
		first++
	}
	for k := range len(c.blocks) + 1 { // the first one twice: what is before the turn is last
		i := (first + k) % max(len(c.blocks), 1)
		if i == len(c.blocks) {
			break
		}
		b, left := int(c.blocks[i]), c.left[i]
		if before := uint64(1)<<(u.First&63) - 1; b == u.First>>6 && k == 0 {
			left &^= before
		} else if k == len(c.blocks) {
			left &= before
		}
		c.left[i] &^= left
		for ; left != 0; left &= left - 1 {
			if used >= room {
				u.First = b<<6 + bits.TrailingZeros64(left)
				return used
			}
			bit := left & -left
			if c.Chosen[b] |= bit; c.dear[i]&bit != 0 {
				used += cost.Dear
			} else {
				used += cost.Cheap
			}
		}
	}
	return used
}

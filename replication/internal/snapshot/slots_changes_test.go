package snapshot

import (
	"math/rand/v2"
	"slices"
	"testing"

	"github.com/arche-replicate/arche-replicate/delta"
	"github.com/arche-replicate/arche-replicate/replication/internal/bitset"
	"github.com/arche-replicate/arche-replicate/replication/internal/replicationtest"
	"github.com/mlange-42/arche/ecs"
	"github.com/stretchr/testify/require"
)

// A changeTwin plays random changes against a SlotTable and lists the ticks in which each slot changed.
type changeTwin struct {
	slots   SlotTable
	rng     *rand.Rand
	now     delta.Tick
	changed [][]delta.Tick // by slot, in order; the entity spawned in the first
	lives   []uint16       // by slot: entities so far
}

// tick plays the changes of a tick.
func (c *changeTwin) tick(t *testing.T) {
	r, s := c.rng, &c.slots
	c.now++
	s.Begin(c.now)
	s.Reclaim(c.now)
	old := slices.Clone(s.Alive)
	churned := bitset.Set(nil).Grown(s.Len() + 64)
	for range r.IntN(3) {
		if s.Live < 150 {
			slot := s.Add(ecs.Entity{}, c.now)
			if slot == len(c.changed) {
				c.changed, c.lives = append(c.changed, nil), append(c.lives, 0)
			}
			c.lives[slot]++
			c.changed[slot] = []delta.Tick{c.now}
			churned.Add(slot)
			require.Equal(t, c.lives[slot], s.Info[slot].Generation, "the generation counts the entities of a slot")
		}
	}
	for b, word := range old {
		for slot := range bitset.Slots(b, word) {
			if r.IntN(200) == 0 {
				s.Remove(slot, c.now)
				churned.Add(slot)
			}
		}
	}
	for slot := range s.Len() { // some are busy, others rest for a long time
		if s.Alive.Has(slot) && r.IntN(1+slot*slot%97) == 0 {
			s.Touch(slot, c.now)
			if !churned.Has(slot) {
				c.changed[slot] = append(c.changed[slot], c.now)
			}
		}
	}
	s.List()
	for b, word := range s.Churned {
		require.Equal(t, churned[b], word)
	}
}

// last returns the last change of a slot up to a tick.
func (c *changeTwin) last(slot int, at delta.Tick) delta.Tick {
	list := c.changed[slot]
	for list[len(list)-1].After(at) {
		list = list[:len(list)-1]
	}
	return list[len(list)-1]
}

// check compares what the table knows with the lists. settled is the last tick that has ended.
func (c *changeTwin) check(t *testing.T, settled delta.Tick) {
	s := &c.slots
	for slot, list := range c.changed {
		if c.rng.IntN(8) > 0 {
			continue
		}
		b, bit := slot>>6, uint64(1)<<(slot&63)
		for age := range delta.Tick(RecentTicks + 8) {
			at := settled - age
			if !s.Alive.Has(slot) || at.Before(list[0]) {
				break
			}
			if changed := c.last(slot, settled).After(at); changed || settled == c.now || age < RecentTicks {
				require.Equal(t, changed, s.ChangedAfter(at, b, bit) != 0, "slot %d, %d ticks ago", slot, age)
			}
			last := c.last(slot, at)
			of, known := s.ChangedBy(slot, at)
			require.True(t, !known || of == last, "slot %d, %d ticks ago: %d, not %d", slot, age, last, of)
			if settled-last < RecentTicks || !list[max(0, len(list)-2)].After(at) {
				require.True(t, known, "slot %d, %d ticks ago", slot, age)
			}
			if settled != c.now {
				continue
			}
			switch in := s.ChangedIn(at, c.now, b)&bit != 0; {
			case last == at:
				require.True(t, in, "slot %d changed %d ticks ago", slot, age)
			case age < RecentTicks:
				require.False(t, in, "slot %d did not change %d ticks ago", slot, age)
			}
		}
	}
}

// TestSlotsKnowWhenTheyChanged: recent changes are known tick by tick, and the last two of a slot
// however old they are. Nothing that changed counts as unchanged.
func TestSlotsKnowWhenTheyChanged(t *testing.T) {
	replicationtest.OneGoroutine(t)
	seed := replicationtest.Seed(t)
	for i, first := range []delta.Tick{0, 1 << 20, ^delta.Tick(0) - 100} { // ticks wrap
		c := &changeTwin{rng: rand.New(rand.NewPCG(seed, uint64(i))), now: first}
		c.slots.InitClasses(0, 0)
		c.slots.Recent.Now = first
		for range 250 {
			c.tick(t)
			c.check(t, c.now-1)
			c.slots.Settle(c.now)
			c.check(t, c.now)
		}
	}
}

// TestTouchSetCrossesBlocks: 64 consecutive slots may begin anywhere in a block.
func TestTouchSetCrossesBlocks(t *testing.T) {
	for _, first := range []int{0, 1, 40, 63, 64} {
		for _, set := range []uint64{1, 1 << 63, ^uint64(0), 1<<24 | 1<<23} {
			var one, all SlotTable
			for _, s := range []*SlotTable{&one, &all} {
				s.InitClasses(0, 0)
				for range 192 {
					s.Add(ecs.Entity{}, 1)
				}
				s.Settle(1)
			}
			all.touchSet(first, set, 2)
			for slot := range bitset.Slots(0, set) {
				one.Touch(first+slot, 2)
			}
			require.Equal(t, one.Changed, all.Changed, "%x from %d on", set, first)
			require.Equal(t, one.ChangedAt, all.ChangedAt)
			require.Equal(t, one.ChangedBefore, all.ChangedBefore)
		}
	}
}

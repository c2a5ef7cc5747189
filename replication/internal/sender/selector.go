package sender

import (
	"math/bits"

	"github.com/arche-replicate/arche-replicate/replication/internal/bitset"
	"github.com/arche-replicate/arche-replicate/replication/internal/choice"
	"github.com/arche-replicate/arche-replicate/replication/internal/snapshot"
	"github.com/mlange-42/arche/ecs"
)

// A chooser chooses slots for the peers of a worker.
type chooser struct {
	choice.Chooser
	awaited bitset.Set // slots of what a message waits for

	// For a peer with a weight function of its own.
	weights  []snapshot.SlicedWeights // by block
	asked    []int32                  // slots that the function is called for
	entities []ecs.Entity             // in these slots
	given    []float32                // their weights
}

// A selector selects what a peer is sent if its budget is too small for everything dirty: what has
// waited longest, times its weight. No waiting slot is forgotten, so none starves.
type selector struct {
	*peer
	Weigh   func([]ecs.Entity, []float32) // the peer's own weights; nil: those of the components
	Urgency snapshot.Urgency              // of dirty slots

	// press finds them for choose: whether there may be dirty slots to be despawned, or that came back into view, and
	// how many dirty ones are of new entities, have lapsed, and have a baseline.
	anyGone, anyReturned bool
	fresh, lapsed, based int32

	turn int32 // Urgency.First for what came back into view, from visit to visit
}

// Shares of the room, inverted.
const (
	structureShare = 8  // for despawns, for spawns and returns, and for others beside spawns of more than a second
	returnShare    = 16 // for returns beside many spawns
	awaitedShare   = 32 // for spawns and returns that a message waits for, whatever their weights
	updateShare    = 2  // for updates, at most, while everything that has lapsed takes more than the rest
	smallShare     = 2  // for states that fit into a packet, while there are larger ones
	margin         = 32 // is left free for entries longer than estimated
)

// drop frees the memory, as there is no budget or no session.
func (p *selector) drop() {
	if p.Urgency.Planes != nil { // most peers have no budget, and nothing to write here
		p.Urgency = snapshot.Urgency{}
	}
}

// wait ends a tick: what is clean no longer waits.
func (p *selector) wait() {
	p.Urgency.Wait(p.acked.Dirty)
	if p.sight.View.InView == nil {
		return
	}
	for b, returned := range p.acked.Acks.Returned {
		p.acked.Acks.Returned[b] = returned & p.acked.Dirty[b]
	}
}

// press adds the weights of dirty slots to their urgency.
func (p *selector) press(c *chooser) {
	s, u, acks := &p.snap.Slots, &p.Urgency, &p.acked.Acks
	if u.Planes == nil {
		clear(acks.Returned) // nobody has noted what was sent since
	}
	u.Grow(s.Len())
	weights := s.Weights.Blocks
	if p.Weigh != nil {
		weights = p.askWeights(c)
	}
	p.anyGone, p.anyReturned, p.fresh, p.lapsed, p.based = false, false, 0, 0, 0
	lively, dirty := s.Lively(), p.acked.Dirty
	for b := range u.Waiting {
		live, gone := p.acked.Split(b, dirty[b])
		p.anyGone = p.anyGone || gone != 0
		bare, none := live&acks.Bare(b), acks.None[b]
		p.based += int32(bits.OnesCount64(live &^ bare))
		if bare != 0 {
			p.fresh += int32(bits.OnesCount64(bare & none))
			p.lapsed += int32(bits.OnesCount64(bare &^ none))
		}
		dirty[b] = live | gone
		w := &weights[b]
		if gone != 0 { // what has these slots now may be hidden
			even := w.WithUnit(gone)
			w = &even
		}
		double := live &^ (s.Changed[b] | lively[b])
		if p.sight.View.InView != nil {
			returned := live & acks.Returned[b]
			p.anyReturned = p.anyReturned || returned != 0
			double &^= none | returned // how lively something was before it came into view must not show
		}
		u.Gain(b, live|gone, w, double)
	}
}

// askWeights returns the weights that the peer's own function gives to dirty slots.
func (p *selector) askWeights(c *chooser) []snapshot.SlicedWeights {
	s := &p.snap.Slots
	for len(c.weights) < len(s.Alive) {
		c.weights = append(c.weights, snapshot.SlicedWeights{})
	}
	c.asked, c.entities, c.given = c.asked[:0], c.entities[:0], c.given[:0]
	for b, d := range p.acked.Dirty {
		c.weights[b].Reset()
		live, _ := p.acked.Split(b, d)
		for slot := range bitset.Slots(b, live) {
			if entity := s.Info[slot].Entity; !entity.IsZero() {
				c.asked = append(c.asked, int32(slot))
				c.entities, c.given = append(c.entities, entity), append(c.given, s.Weight(slot))
			} else { // the resources
				c.weights[b].Put(slot, s.Weight(slot), 0)
			}
		}
	}
	if len(c.asked) > 0 {
		p.Weigh(c.entities, c.given)
	}
	for i, slot := range c.asked {
		if !(c.given[i] >= 1) && p.acked.Acks.Ended.Has(int(slot)) {
			c.given[i] = 1 // the client may still show an earlier entity, which must not stay
		}
		chance := snapshot.ChanceOf(int(slot), uint32(p.snap.Tick))
		c.weights[slot>>6].Put(int(slot), c.given[i], chance)
	}
	return c.weights
}

// choose sets c.Chosen to the dirty slots that are sent, as many as so many bits have room for. rate is that of the
// budget, and partsFirst reports that states larger than a packet come first. Despawns, spawns, returns, updates and
// small states have shares of their own, and compete for the rest as well.
func (p *selector) choose(c *chooser, room int, cost choice.Prices, rate int64, partsFirst bool) {
	u := &p.Urgency
	c.Begin(p.snap.Slots.Len())
	used := 0
	if p.anyGone && p.addCandidates(c, despawns) {
		used += c.Choose(u, room/structureShare, choice.Prices{Cheap: despawnBits})
	}
	least := used + room/structureShare
	if p.acked.Structure.Waits() {
		c.awaited = c.awaited.Grown(p.snap.Slots.Len())
		if p.acked.Structure.FindAwaited(c.awaited); p.addCandidates(c, awaited) {
			used += c.Choose(u, room/awaitedShare, cost)
		}
	}
	if p.fresh > 0 && p.addCandidates(c, spawns) {
		used += c.Choose(u, least-used, cost)
	}
	if p.anyReturned && p.addCandidates(c, returned) {
		u.First, p.turn = p.turn, u.First
		used += c.Choose(u, max(least-used, room/returnShare), cost)
		u.First, p.turn = p.turn, u.First
	}
	if int64(p.fresh)*int64(cost.Dear) > 8*rate { // all spawns of a mass have waited for longer
		if p.addCandidates(c, shown) {
			used += c.Choose(u, room/structureShare, cost)
		}
	} else if of := p.roomOfUpdates(room, cost, rate); of > 0 && p.addCandidates(c, updates) {
		used += c.Choose(u, of, cost)
	}
	// A part of a large state takes the room of very many updates. These come first, unless it had no room beside them.
	of := small
	if partsFirst {
		of = big
	}
	if p.acked.Large.Any() && p.addCandidates(c, of) {
		used += c.Choose(u, room/smallShare, cost)
	}
	if p.addCandidates(c, everything) {
		c.Choose(u, room-room/margin-used, cost)
	}
}

// roomOfUpdates returns the room that is reserved for updates beside much that has lapsed: whose baseline is too old.
// That has waited longer and takes more bits. If it always came first, what has a baseline would lapse while it waits,
// and be sent in full as well: a budget that suffices for updates would never get there. If updates are not much
// smaller, that matters little. If the budget is far too short for an update of everything within the window, most
// would lapse in any case, and wait longer for their turn.
func (p *selector) roomOfUpdates(room int, cost choice.Prices, rate int64) int {
	cheap, dear := int64(cost.Cheap), int64(cost.Dear)
	most := int64(room) * min(2*dear-3*cheap, cheap) / (updateShare * cheap)
	if most <= 0 || int64(p.lapsed)*dear <= int64(room)-most {
		return 0
	}
	inWindow := func(slots int32, bits int64) int64 { // per second
		return int64(slots) * bits * int64(p.opts.TickRate) / int64(p.opts.Window)
	}
	if inWindow(p.based+p.lapsed, min(cheap, dear/3)) > 12*rate { // cheap is a guess until updates are sent
		return 0
	}
	return int(min(int64(room)/max(8*rate/max(inWindow(p.based, cheap), 1), 1), most))
}

// A share is the part of the budget that some dirty slots compete for.
type share uint8

const (
	despawns   share = iota
	awaited          // of those of them, or that came back into view, that a message waits for
	spawns           // of entities of which the peer holds nothing
	returned         // of those of the others that came back into view
	shown            // of all others
	updates          // of those of them that have a baseline
	small            // of all entities whose states fit into a packet
	big              // of the others
	everything       // dirty
)

// addCandidates makes the dirty slots of a share the candidates, and reports whether there are any.
func (p *selector) addCandidates(c *chooser, of share) bool {
	acks, alive := &p.acked.Acks, p.snap.Slots.Alive
	for b := range p.acked.DirtyBlocks.All() {
		d := p.acked.Dirty[b]
		live, bare, large := p.sight.View.Sees(b, d&alive[b]), acks.Bare(b), p.acked.Large.In(b)
		switch of {
		case despawns: // press has split them: everything that is not live is gone
			c.Add(b, d&^live, 0)
		case awaited:
			c.Add(b, live&c.awaited[b]&(acks.None[b]|acks.Returned[b]), bare)
		case spawns:
			c.Add(b, live&acks.None[b], ^uint64(0))
		case returned:
			c.Add(b, live&acks.Returned[b]&^acks.None[b], bare)
		case shown:
			c.Add(b, live&^acks.None[b], bare|large)
		case updates:
			c.Add(b, live&^bare, large)
		case small:
			c.Add(b, live&^large, bare)
		case big:
			c.Add(b, live&large, ^uint64(0))
		default:
			c.Add(b, d, live&(bare|large))
		}
	}
	return c.Any()
}

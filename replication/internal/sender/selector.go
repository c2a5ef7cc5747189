package sender

import (
	"math/bits"

	"github.com/arche-replicate/arche-replicate/replication/internal/bitset"
	"github.com/arche-replicate/arche-replicate/replication/internal/snapshot"
	"github.com/mlange-42/arche/ecs"
)

// A selector selects what a peer is sent if its budget is too small for everything dirty: what has
// waited longest, times its weight. No waiting slot is forgotten, so none starves.
type selector struct {
	*peer
	Weigh   func([]ecs.Entity, []float32) // the peer's own weights; nil: those of the components
	Urgency Urgency                       // of dirty slots

	// press finds them for choose: there may be dirty slots to be despawned, and so many of new entities.
	anyGone bool
	fresh   int
}

const (
	// structureShare is the share of the budget that is reserved for despawns, and once more for spawns.
	structureShare = 8
	// updateShare is the share that is reserved for updates while there is a mass of spawns: more than take a second.
	updateShare = 8
	// smallShare is the share that is reserved for states that fit into a packet while there are larger ones.
	smallShare = 2
	// margin is the share of the room that is left free for entries longer than estimated.
	margin = 32
)

// drop frees the memory, as there is no budget or no session.
func (p *selector) drop() {
	if p.Urgency.Blocks != nil { // most peers have no budget, and nothing to write here
		p.Urgency = Urgency{}
	}
}

// press adds the weights of dirty slots to their urgency.
func (p *selector) press(c *chooser) {
	s, u := &p.snap.Slots, &p.Urgency
	u.grow(s.Len())
	weights := s.Weights.Blocks
	if p.Weigh != nil {
		weights = p.askWeights(c)
	}
	p.anyGone, p.fresh = false, 0
	for b := range u.Waiting {
		live, gone := p.acked.Split(b, p.acked.Dirty[b])
		p.anyGone, p.fresh = p.anyGone || gone != 0, p.fresh+bits.OnesCount64(live&p.acked.Acks.None[b])
		p.acked.Dirty[b] = live | gone
		w := &weights[b]
		if gone != 0 { // what has these slots now may be hidden
			even := w.WithUnit(gone)
			w = &even
		}
		u.gain(b, p.acked.Dirty[b], w, live&^s.Lively(b, live))
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

// choose sets c.chosen to the dirty slots that are sent, as many as so many bits have room for. rate is that of the
// budget, and partsFirst reports that states larger than a packet come first. Despawns, spawns, updates and small
// states have shares of their own, and compete for the rest as well.
func (p *selector) choose(c *chooser, room int, cost prices, rate int64, partsFirst bool) {
	u := &p.Urgency
	c.begin(p.snap.Slots.Len())
	used := 0
	if p.anyGone && p.addCandidates(c, despawns) {
		used += c.choose(u, room/structureShare, prices{cheap: despawnBits})
	}
	if p.fresh > 0 && p.addCandidates(c, spawns) {
		used += c.choose(u, room/structureShare, cost)
	}
	// All spawns of a mass wait for longer than what has just had its turn. A few had better all come first: then
	// updates go on together, which takes fewer bits.
	if int64(p.fresh)*int64(cost.dear) > 8*rate && p.addCandidates(c, updates) {
		used += c.choose(u, room/updateShare, cost)
	}
	// A part of a large state takes the room of very many updates. These come first, unless it had no room beside them.
	of := small
	if partsFirst {
		of = large
	}
	if len(p.acked.Large) > 0 && p.addCandidates(c, of) {
		used += c.choose(u, room/smallShare, cost)
	}
	if p.addCandidates(c, everything) {
		c.choose(u, room-room/margin-used, cost)
	}
}

// A share is the part of the budget that some dirty slots compete for.
type share uint8

const (
	despawns   share = iota
	spawns           // of entities of which the peer holds nothing
	updates          // of the others
	small            // of all entities whose states fit into a packet
	large            // of the others
	everything       // dirty
)

// addCandidates makes the dirty slots of a share the candidates, and reports whether there are any.
func (p *selector) addCandidates(c *chooser, of share) bool {
	alive := p.snap.Slots.Alive
	for b := range p.acked.DirtyBlocks.All() {
		d := p.acked.Dirty[b]
		live := p.sight.View.Sees(b, d&alive[b])
		switch of {
		case despawns: // press has split them: everything that is not live is gone
			c.add(b, d&^live, 0)
		case spawns:
			c.add(b, live&p.acked.Acks.None[b], ^uint64(0))
		case updates:
			c.add(b, live&^p.acked.Acks.None[b], p.acked.Acks.Large[b])
		case small:
			c.add(b, live&^p.acked.Acks.Large[b], p.acked.Acks.None[b])
		case large:
			c.add(b, live&p.acked.Acks.Large[b], ^uint64(0))
		default:
			c.add(b, d, p.acked.Costly(b, live))
		}
	}
	return len(c.blocks) > 0
}

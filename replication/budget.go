package replication

import (
	"cmp"
	"fmt"
	"math/bits"
	"slices"

	"github.com/mlange-42/arche/ecs"
)

// A peer with less bandwidth than there is news gets what matters most: what has waited
// longest, times what it weighs. Nothing that waits is forgotten, so nothing starves.

// A budget is a token bucket. It counts in bytes times the tick rate, so that integers
// are exact.
type budget struct {
	rate   int // bytes per second; 0: no limit
	tokens int // what may be sent now
	depth  int // what they grow up to
}

// SetBudget limits the state packets to the peer to so many bytes per second, counting
// what the send function gets; 0 lifts the limit. A second is as many ticks as
// [WithTickRate] says. What was saved up may be sent at once, up to the bytes of an
// eighth of a second and at least two packets.
//
// Panics if the number is negative.
func (p *Peer) SetBudget(bytesPerSecond int) {
	if bytesPerSecond < 0 {
		panic(fmt.Sprintf("replication: a budget of %d bytes per second: use 0 for none", bytesPerSecond))
	}
	o := &p.server.opts
	b := &p.budget
	b.rate = bytesPerSecond
	b.depth = max(bytesPerSecond*o.tickRate/8, 2*o.mtu*o.tickRate)
	b.tokens = min(b.tokens, b.depth)
}

// SetPriority makes the peer call weigh in ticks in which its budget does not suffice, on
// the goroutine that calls Replicate: it gets the entities that wait for being sent and
// their weights so far, and may change the weights, for instance by distance. What is
// sent first is what has the largest product of weight and ticks waited. An entity of
// weight 0 or less is sent when there is room for all others. nil ends that.
//
// weigh must not change the world, nor keep the slices.
func (p *Peer) SetPriority(weigh func(entities []ecs.Entity, weights []float32)) {
	p.weigh = weigh
}

// SetPriority gives an entity a weight for all peers, on top of those of its components:
// the products of weight and ticks waited say who is sent first where the budget does not
// suffice. The default is 1. The entity must have been found by a Replicate; its weight
// lasts as long as it does.
//
// Panics if the weight is not positive.
func (s *Server) SetPriority(e ecs.Entity, weight float32) {
	if !(weight > 0) {
		panic(fmt.Sprintf("replication: a priority of %v: use a positive weight", weight))
	}
	if id, ok := s.NetID(e); ok {
		s.slots.info[id.Slot].weight = weight
	}
}

// earn adds the tokens of a tick.
func (b *budget) earn() { b.tokens = min(b.tokens+b.rate, b.depth) }

// short reports whether the tokens are used up.
func (b *budget) short() bool { return b.rate > 0 && b.tokens <= 0 }

// spend takes the tokens for so many bytes.
func (b *budget) spend(bytes, tickRate int) {
	if b.rate > 0 {
		b.tokens -= bytes * tickRate
	}
}

// A candidate is a slot that waits for being sent.
type candidate struct {
	slot   int32
	rank   uint32 // order: the highest first
	urgent bool   // comes or goes
}

// chooser is scratch memory.
type chooser struct {
	candidates []candidate
	entities   []ecs.Entity
	weights    []float32
	chosen     bitset
}

const (
	// restBoost is how much more weight has what has come to rest: it is not sent again.
	restBoost = 2
	// urgentShare is the share of the budget that is kept for what comes and goes.
	urgentShare = 4
	// entryBits is about what an entry takes beside its run.
	entryBits = 12
	// headerBits is about what a packet takes beside its entries.
	headerBits = 16 * 8
)

// affordable returns the bits that may be sent now.
func (p *Peer) affordable() int { return p.budget.tokens / p.server.opts.tickRate * 8 }

// need returns about how many bits all that is due takes.
func (p *Peer) need() (need int) {
	s := p.server
	for b, d := range p.due {
		if d == 0 {
			continue
		}
		whole := d &^ p.acks.blocks[b].acked & s.slots.alive[b]
		need += bits.OnesCount64(d&^whole) * (p.typical + entryBits)
		for slot := range slotsOf(b, whole) {
			need += s.slots.info[slot].width + 2*entryBits
		}
	}
	return need
}

// plan is what a peer does in a tick.
type plan uint8

const (
	sendNothing plan = iota
	sendAll
	sendBest
	sendInTurn // all, in turns with other peers
)

// plan decides what to do with the budget: what is due is sent at once if there is room
// for it, and the best of it as soon as there are tokens for a packet worth its header.
func (p *Peer) plan() plan {
	if p.interval > 1 && (p.server.tick+p.phase)%p.interval != 0 {
		return sendNothing
	}
	if p.budget.rate == 0 {
		return sendAll
	}
	need, room := p.need(), p.affordable()
	switch {
	case need+need/2 <= room:
		return sendAll
	case room < 8*min(p.server.opts.mtu, max(p.budget.rate/quantum, minPacket)):
		return sendNothing
	}
	return sendBest
}

const (
	quantum   = 15  // a peer whose budget is short gets that many packets a second, or larger ones
	minPacket = 100 // but not smaller than so many bytes
)

// learn notes what an update took, as a moving mean.
func (p *Peer) learn(r *run) { p.typical += (r.bits - p.typical) / 16 }

// rank collects all that is due and orders it by weight and waiting.
func (p *Peer) rank() {
	c, s := &p.choice, p.server
	c.candidates, c.entities, c.weights = c.candidates[:0], c.entities[:0], c.weights[:0]
	for b, d := range p.due {
		if d == 0 {
			continue
		}
		blk := &p.acks.blocks[b]
		live := p.view.sees(b, d&s.slots.alive[b])
		for slot := range slotsOf(b, live|d&blk.shown) {
			info, bit := &s.slots.info[slot], uint64(1)<<(slot&63)
			c.candidates = append(c.candidates, candidate{slot: int32(slot), urgent: live&bit == 0 || blk.shown&bit == 0})
			weight := info.weight * info.table.weight
			if live&bit != 0 && s.tick-s.slots.changed[slot] > restAfter {
				weight *= restBoost
			}
			c.weights = append(c.weights, weight)
			c.entities = append(c.entities, info.entity)
		}
	}
	if p.weigh != nil && len(c.entities) > 0 {
		p.weigh(c.entities, c.weights)
	}
	for i := range c.candidates {
		k := &c.candidates[i]
		k.rank = p.rankOf(int(k.slot), c.weights[i])
	}
}

// classes of ranks, 16 to the octave.
const rankClasses = 33 << 4

func rankClass(rank uint32) int {
	n := bits.Len32(rank)
	return n<<4 | int(uint64(rank)<<(36-n)>>32&15)
}

// sort orders the best of the candidates, as many as fit into so many bits if they are as
// small as can be, and drops the others. It takes linear time, but for these.
func (c *chooser) sort(room int) {
	var counts [2][rankClasses]int // of all, and of what is urgent
	for i := range c.candidates {
		k := &c.candidates[i]
		counts[0][rankClass(k.rank)]++
		if k.urgent {
			counts[1][rankClass(k.rank)]++
		}
	}
	var least [2]int
	for i := range counts {
		n, class := 0, rankClasses-1
		for ; class > 0 && n <= room/entryBits; class-- {
			n += counts[i][class]
		}
		least[i] = class
	}
	c.candidates = slices.DeleteFunc(c.candidates, func(k candidate) bool {
		class := rankClass(k.rank)
		return class < least[0] && !(k.urgent && class >= least[1])
	})
	slices.SortFunc(c.candidates, func(x, y candidate) int {
		return cmp.Or(cmp.Compare(y.rank, x.rank), cmp.Compare(x.slot, y.slot))
	})
}

// rankOf returns the rank of a slot: the product of its weight and the ticks it waits, in
// 1/256.
func (p *Peer) rankOf(slot int, weight float32) uint32 {
	waited := uint16(0)
	if p.waiting.has(slot) {
		waited = uint16(p.server.tick) - p.waits[slot]
	}
	product := float64(weight) * 256 * (float64(waited) + 1)
	if !(product > 0) {
		return 0
	}
	return uint32(min(product, 1<<32-1))
}

// sendChosen sends of what is due as much as the budget allows, best first.
func (p *Peer) sendChosen() {
	c := &p.choice
	c.chosen = c.chosen.grown(p.server.slots.len())
	clear(c.chosen)
	room := p.affordable()
	room -= (room/8/p.server.opts.mtu + 1) * headerBits
	c.sort(room)
	// What comes and goes has a share of its own, and competes for the rest.
	room -= p.choose(room/urgentShare, true)
	p.choose(room, false)
	p.packet.begin(p)
	for b, d := range c.chosen {
		if d != 0 && p.sendBlock(b, d) != nil {
			break
		}
	}
	p.packet.finish()
}

// choose marks candidates in the order of their rank until so many bits are used up, and
// returns how many are. Only what comes or goes, if urgent.
func (p *Peer) choose(room int, urgent bool) (used int) {
	c := &p.choice
	for i := range c.candidates {
		k := &c.candidates[i]
		if used >= room {
			break
		}
		slot := int(k.slot)
		if urgent && !k.urgent || c.chosen.has(slot) {
			continue
		}
		c.chosen.set(slot)
		used += p.cost(slot)
	}
	return used
}

// cost returns about how many bits the entry of a slot takes.
func (p *Peer) cost(slot int) int {
	b, bit := slot>>6, uint64(1)<<(slot&63)
	s := p.server
	if p.view.sees(b, s.slots.alive[b])&bit == 0 {
		return entryBits
	}
	if p.acks.blocks[b].rare&bit != 0 && p.acks.rare[b].large&bit != 0 {
		return p.server.opts.mtu * 8
	}
	p.classify(b, bit)
	r, _ := p.bestRun(slot, &p.classes[0])
	if r.kind == entryWhole {
		return r.bits + 2*entryBits
	}
	p.learn(r)
	return r.bits + entryBits
}

// wait notes since when what is due and was not sent waits.
func (p *Peer) wait() {
	if p.budget.rate == 0 {
		return
	}
	n := p.server.slots.len()
	p.waiting = p.waiting.grown(n)
	if more := len(p.waiting)*64 - len(p.waits); more > 0 {
		p.waits = append(p.waits, make([]uint16, more)...)
	}
	for b, d := range p.due {
		for slot := range slotsOf(b, d&^p.waiting[b]) {
			p.waits[slot] = uint16(p.server.tick)
		}
		p.waiting[b] = d
	}
}

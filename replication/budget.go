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
	rate   int64 // bytes per second; 0: no limit
	tokens int64 // what may be sent now; less than 0 by no more than a packet
}

// SetBudget limits the state packets to the peer to so many bytes per second, counting
// what the send function gets; 0 lifts the limit. Messages are sent all the same, and what
// they take is missing for the state. A second is as many ticks as
// [WithTickRate] says. What was saved up may be sent at once, up to the bytes of an
// eighth of a second, or of the ticks between two sends if these are longer, and two
// packets: in no span of time is more than that sent beyond the rate.
//
// Panics if the number is negative.
func (p *Peer) SetBudget(bytesPerSecond int) {
	p.mustExist()
	if bytesPerSecond < 0 {
		panic(fmt.Sprintf("replication: a budget of %d bytes per second: use 0 for none", bytesPerSecond))
	}
	b := &p.budget
	if b.rate == 0 {
		b.tokens = 0
	}
	b.rate = min(int64(bytesPerSecond), maxRate)
}

// maxRate keeps tokens from overflowing.
const maxRate = 1 << 40

// SetPriority makes the peer call weigh in ticks in which its budget does not suffice, on
// the goroutine that calls Replicate: it gets the entities that wait for being sent and
// their weights so far, and may change the weights, for instance by distance. What is
// sent first is what has the largest product of weight and ticks waited. What an entity has
// under a condition waits by itself, so entities may come up more than once. An entity of
// weight 0 or less is sent when there is room for all others. nil ends that.
//
// weigh must not change the world, nor keep the slices.
func (p *Peer) SetPriority(weigh func(entities []ecs.Entity, weights []float32)) {
	p.mustExist()
	p.weigh = weigh
}

// savings returns what the tokens grow up to: less by a packet than what may be sent at
// once, since the last packet that is begun may take more than there is.
func (p *Peer) savings() int64 {
	b, o := &p.budget, &p.server.opts
	return max(b.rate*int64(o.tickRate)/8, b.rate*int64(p.interval)) + int64(o.mtu*o.tickRate)
}

// earn adds the tokens of a tick.
func (p *Peer) earn() {
	if b := &p.budget; b.rate > 0 {
		b.tokens = min(b.tokens+b.rate, p.savings())
	}
}

// short reports whether the tokens are used up.
func (b *budget) short() bool { return b.rate > 0 && b.tokens <= 0 }

// spend takes the tokens for so many bytes.
func (b *budget) spend(bytes, tickRate int) {
	if b.rate > 0 {
		b.tokens -= int64(bytes * tickRate)
	}
}

// A candidate is a slot that waits for being sent. What comes or goes is two of them.
type candidate struct {
	slot int32
	kind candidateKind
	rank uint32 // order: the highest first
}

type candidateKind uint8

const (
	differs candidateKind = iota // whatever waits, by weight and waiting
	comes                        // the peer is to learn that there is such an entity; by waiting alone
	goes                         // that there is not
	candidateKinds
)

// chooser is scratch memory, which the peers of a worker share.
type chooser struct {
	candidates []candidate
	entities   []ecs.Entity
	weights    []float32
	chosen     bitset
}

const (
	// restBoost is how much more weight has what has come to rest: it is not sent again.
	restBoost = 2
	// structureShare is the share of the budget that is kept for what comes, and once more
	// for what goes.
	structureShare = 8
	// leastEntry is the least bits that an entry takes.
	leastEntry = 8
	// wholeBits is about what the entry of a whole takes beside what any entry does.
	wholeBits = 12
	// headerBits is about what a packet takes beside its entries.
	headerBits = 14 * 8

	quantum   = 15  // a peer whose budget is short gets that many packets a second, or larger ones
	minPacket = 100 // but not smaller than so many bytes
)

// affordable returns the bits that may be sent now: whole packets, if it is more than one.
func (p *Peer) affordable() int {
	o := &p.server.opts
	bytes := int(min(p.budget.tokens/int64(o.tickRate), 1<<27))
	if bytes > o.mtu {
		bytes -= bytes % o.mtu
	}
	return 8*bytes - (bytes+o.mtu-1)/o.mtu*headerBits
}

// need returns about how many bits all that is due takes.
func (p *Peer) need() (need int) {
	s := p.server
	for b, d := range p.due {
		if d == 0 {
			continue
		}
		live := p.view.sees(b, d&s.slots.alive[b])
		whole := live &^ p.acks.block(b).acked
		need += bits.OnesCount64(d)*p.overhead/overheadUnit + bits.OnesCount64(live&^whole)*p.typical
		for slot := range slotsOf(b, whole) {
			need += s.slots.info[slot].width + wholeBits
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
	sendInTurn // all, in turns with other peers, as it is found out what that is
	sendReady  // all, in turns with other peers; what that is is known
)

// plan decides what to do with the budget: what is due is sent at once if there is room
// for it, and the best of it as soon as there are tokens for a packet worth its header.
func (p *Peer) plan() plan {
	if p.budget.rate > 0 {
		p.meet()
	}
	if !p.itsTurn() {
		return sendNothing
	}
	if p.budget.rate == 0 {
		return sendAll
	}
	need, room := p.need(), p.affordable()
	switch {
	case need+need/2 <= room:
		return sendAll
	case p.budget.tokens < min(int64(p.server.opts.mtu), max(p.budget.rate/quantum, minPacket))*int64(p.server.opts.tickRate):
		return sendNothing
	}
	return sendBest
}

// itsTurn reports whether the present tick is one of the peer's send interval.
func (p *Peer) itsTurn() bool {
	return p.interval == 1 || (p.server.tick+p.phase)%p.interval == 0
}

// rank collects all that is due and orders the best of it by weight and waiting.
func (p *Peer) rank(c *chooser) {
	s := p.server
	c.candidates, c.entities, c.weights = c.candidates[:0], c.entities[:0], c.weights[:0]
	for b, d := range p.due {
		if d == 0 {
			continue
		}
		live, gone := p.split(b, d)
		p.due[b] = live | gone
		for slot := range slotsOf(b, live) {
			info := &s.slots.info[slot]
			weight := s.slots.info[info.of].weight * info.table.weight
			if s.tick-s.slots.changed[slot] > restAfter {
				weight *= restBoost
			}
			c.candidates = append(c.candidates, candidate{slot: int32(slot)})
			c.weights = append(c.weights, weight)
			c.entities = append(c.entities, info.entity)
		}
	}
	first := 0
	if len(c.entities) > 0 && c.entities[0].IsZero() {
		first = 1 // the resources, which are no entity
	}
	if p.weigh != nil && len(c.entities) > first {
		p.weigh(c.entities[first:], c.weights[first:])
	}
	for i, weight := range c.weights {
		c.candidates[i].rank = p.rankOf(int(c.candidates[i].slot), weight)
	}
	for b, d := range p.due {
		if d == 0 {
			continue
		}
		live, gone := p.split(b, d)
		for slot := range slotsOf(b, live&^p.met[b]) {
			c.candidates = append(c.candidates, candidate{int32(slot), comes, p.rankOf(slot, 1)})
		}
		for slot := range slotsOf(b, gone) {
			rank := p.rankOf(slot, 1)
			c.candidates = append(c.candidates, candidate{int32(slot), goes, rank}, candidate{int32(slot), differs, rank})
		}
	}
	c.sort(p.affordable())
}

// rankOf returns the rank of a slot: the product of its weight and the ticks it waits, in
// 1/256.
func (p *Peer) rankOf(slot int, weight float32) uint32 {
	waited := uint16(0)
	if slot>>6 < len(p.waiting) && p.waiting.has(slot) {
		waited = uint16(p.server.tick) - p.waits[slot]
	}
	product := float64(weight) * 256 * (float64(waited) + 1)
	if !(product > 0) {
		return 0
	}
	return uint32(min(product, 1<<32-1))
}

// classes of ranks, 16 to the octave.
const rankClasses = 33 << 4

func rankClass(rank uint32) int {
	n := bits.Len32(rank)
	return n<<4 | int(uint64(rank)<<(37-n)>>32&15)
}

// sort orders the best of the candidates, as many as fit into so many bits if they are as
// small as can be, of every kind, and drops the others. It takes linear time, but for
// these.
func (c *chooser) sort(room int) {
	var counts [candidateKinds][rankClasses]int
	for i := range c.candidates {
		k := &c.candidates[i]
		counts[k.kind][rankClass(k.rank)]++
	}
	var least [candidateKinds]int
	for kind := range counts {
		n, class := 0, rankClasses-1
		for ; class > 0 && n <= room/leastEntry; class-- {
			n += counts[kind][class]
		}
		least[kind] = class
	}
	c.candidates = slices.DeleteFunc(c.candidates, func(k candidate) bool {
		return rankClass(k.rank) < least[k.kind]
	})
	slices.SortFunc(c.candidates, func(x, y candidate) int {
		return cmp.Or(cmp.Compare(y.rank, x.rank), cmp.Compare(x.slot, y.slot))
	})
}

// sendChosen sends of what is due as much as the budget allows, best first.
func (p *Peer) sendChosen() {
	c := &p.runs.choice
	best := p.best
	if p.weigh == nil {
		p.rank(c)
		best = c.candidates
	}
	c.chosen = c.chosen.grown(p.server.slots.len())
	clear(c.chosen)
	room := p.affordable()
	var runs, entries int
	choose := func(room int, kind candidateKind) int { // returns what is used of the room
		used := 0
		for _, k := range best {
			slot := int(k.slot)
			if used >= room {
				break
			}
			if k.kind != kind || c.chosen.has(slot) {
				continue
			}
			for _, slot := range p.chooseWith(slot, c.chosen) {
				cost := p.cost(int(slot))
				runs, entries = runs+cost, entries+1
				used += cost + p.overhead/overheadUnit
			}
		}
		return used
	}
	// What comes and goes has shares of its own, and competes for the rest.
	reserved := choose(room/structureShare, goes) + choose(room/structureShare, comes)
	choose(room-reserved, differs)
	before := p.stats.EntityBits
	p.sendDue(c.chosen)
	if p.resume == 0 && p.behind == 0 && entries > 0 {
		p.learnOverhead((int(p.stats.EntityBits-before) - runs) * overheadUnit / entries)
	}
}

// cost returns the bits that the entry of a slot takes, without what any entry does.
func (p *Peer) cost(slot int) int {
	b, bit := slot>>6, uint64(1)<<(slot&63)
	s := p.server
	if p.view.sees(b, s.slots.alive[b])&bit == 0 {
		return 0
	}
	if p.acks.block(b).rare&bit != 0 && p.acks.rare(b).large&bit != 0 {
		return s.opts.mtu * 8
	}
	p.classify(b, bit)
	r, _ := p.bestRun(slot, &p.classes.list[0])
	if r.kind == entryWhole {
		return int(r.bits) + wholeBits
	}
	p.typical += (int(r.bits) - p.typical) / 16
	return int(r.bits)
}

const (
	overheadUnit  = 16 // of Peer.overhead, in a bit
	firstOverhead = 12 * overheadUnit
)

// learnOverhead notes what entries took beside their runs, as a moving mean.
func (p *Peer) learnOverhead(overhead int) {
	overhead = min(max(overhead, 0), headBits*overheadUnit)
	p.overhead += (overhead - p.overhead) / 8
}

// meet notes of which entities the peer knows that they are there: something of them was
// acknowledged, if only long ago.
func (p *Peer) meet() {
	s := &p.server.slots
	p.met = p.met.grown(s.len())
	for b := range p.met {
		p.met[b] = p.view.sees(b, p.met[b]&^s.turned[b]) | p.acks.block(b).acked
	}
}

// wait notes since when what is due and was not sent waits.
func (p *Peer) wait() {
	if p.budget.rate == 0 {
		p.waiting, p.waits, p.met = nil, nil, nil
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

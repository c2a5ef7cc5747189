package replication

import (
	"fmt"
	"math/bits"

	"github.com/arche-replicate/arche-replicate/delta"
	"github.com/arche-replicate/arche-replicate/replication/internal/bitset"
	"github.com/mlange-42/arche/ecs"
)

// A peer with less bandwidth than there is news gets what matters most: what has waited
// longest, times what it weighs. Nothing that waits is forgotten, so nothing starves.

// A budget is a token bucket. It counts in bytes times the tick rate, so that integers
// are exact.
type budget struct {
	rate   int64 // bytes per second; 0: no limit
	tokens int64 // what may be sent now; less than 0 by no more than a packet

	control *rateControl // nil: the rate is fixed
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
		panic(fmt.Sprintf("replication: SetBudget(%d): use bytes per second, or 0 for no limit", bytesPerSecond))
	}
	p.out.budget.set(int64(bytesPerSecond))
	p.out.budget.control = nil
}

// SetBudgetRange makes the budget adapt to what the path to the client carries, between least and most bytes per second. It
// counts as [Peer.SetBudget] does, and replaces what that has set; a call of SetBudget ends it. [PeerStats.Budget] is the budget of
// now.
//
// The budget begins with least, rises by half of itself every fifth of a second until the path is busy, and then follows it: it
// falls when round trips get longer or a tenth of the packets are lost, and rises while neither happens and the game needs it.
// It learns from acknowledgements alone: a client that acknowledges what it did not get can raise it, up to most, and one that
// acknowledges nothing is soon sent least. It begins anew with each session.
//
// What is saved up is less than with a fixed budget: the bytes between two sends and two packets.
//
// Panics if least is less than 1 or more than most.
func (p *Peer) SetBudgetRange(least, most int) {
	p.mustExist()
	if least < 1 || most < least {
		panic(fmt.Sprintf("replication: SetBudgetRange(%d, %d): use bytes per second, from 1 up, the smaller number first", least, most))
	}
	b, from, to := &p.out.budget, min(int64(least), maxRate), min(int64(most), maxRate)
	if b.control == nil {
		b.control = newRateControl(from, to, p.server.opts.tickRate, p.server.snap.tick)
	}
	b.control.within(from, to)
	b.set(b.control.budget())
}

// set changes the rate.
func (b *budget) set(rate int64) {
	if b.rate == 0 {
		b.tokens = 0
	}
	b.rate = min(rate, maxRate)
}

// maxRate keeps tokens from overflowing.
const maxRate = 1 << 40

// SetPriority makes the peer call weigh in ticks in which its budget does not suffice, on
// the goroutine that calls Replicate: it gets the entities that wait for being sent and
// their weights so far, and may change the weights, for instance by distance. What is
// sent first is what has the largest sum of weights, added up over the ticks it waited.
// Weights count in sixteenths, and up to 255. What an entity has
// under a condition waits by itself, so entities may come up more than once. An entity of
// weight 0 or less is sent when there is room for all others. nil ends that.
//
// weigh must not change the world, nor keep the slices.
func (p *Peer) SetPriority(weigh func(entities []ecs.Entity, weights []float32)) {
	p.mustExist()
	p.out.weigh = weigh
}

// savings returns what the tokens grow up to: less by a packet than what may be sent at
// once, since the last packet that is begun may take more than there is.
func (p *sender) savings() int64 {
	b, o := &p.budget, p.opts
	saved := b.rate * int64(p.acked.interval)
	if b.control == nil {
		saved = max(saved, b.rate*int64(o.tickRate)/8)
	}
	return saved + int64(o.mtu*o.tickRate)
}

// earn adds the tokens of a tick.
func (p *sender) earn() {
	if b := &p.budget; b.rate > 0 {
		if b.control != nil {
			b.rate = b.control.tick(p.snap.tick, p.acked.interval)
		}
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
	if b.control != nil {
		b.control.spend(bytes)
	}
}

// What becomes of packets is told to what controls the rate, if it is not fixed.

func (b *budget) restart(now delta.Tick) {
	if b.control != nil {
		b.control.restart(now)
		b.rate = b.control.budget()
	}
}

// deliver takes bytes for delivered, as nobody will say whether they were.
func (b *budget) deliver(bytes int) {
	if b.control != nil {
		b.control.deliver(bytes)
	}
}

func (b *budget) acknowledge(packet *sentPacket, now delta.Tick) {
	if b.control != nil && packet.bytes > 0 {
		b.control.acknowledge(now, int(packet.bytes), packet.status == sentLost)
	}
}

func (b *budget) sample(packet *sentPacket, now delta.Tick) {
	if b.control != nil && packet.bytes > 0 {
		b.control.sample(packet.tick, now-packet.tick, int(packet.bytes))
	}
}

func (b *budget) lose() {
	if b.control != nil {
		b.control.lose()
	}
}

const (
	// structureShare is the share of the budget that is kept for what comes, and once more
	// for what goes.
	structureShare = 8
	// endBits is about what the entry of a despawn takes.
	endBits = 12
	// wholeBits is about what the entry of a whole takes beside what any entry does.
	wholeBits = 12
	// headerBits is about what a packet takes beside its entries.
	headerBits = 14 * 8

	maxChoices = 3 // in a tick

	margin = 32 // the share of the room that is left for entries that are longer than usual

	quantum         = 15  // a peer whose budget is short gets that many packets a second, or larger ones
	adaptiveQuantum = 30  // the same of a budget that adapts: many packets tell more about the path than few
	minPacket       = 100 // but not smaller than so many bytes
)

// affordable returns the bits that may be sent now: whole packets, if it is more than one.
func (p *sender) affordable() int {
	o := p.opts
	bytes := int(min(p.budget.tokens/int64(o.tickRate), 1<<27))
	if bytes > o.mtu {
		bytes -= bytes % o.mtu
	}
	return 8*bytes - (bytes+o.mtu-1)/o.mtu*headerBits
}

// need returns about how many bits all that is due takes, and finds out what entries cost.
func (p *sender) need() int {
	s := &p.snap.slots
	cheap, dear, width := 0, 0, 0
	for w, owed := range p.acked.acks.owed {
		for ; owed != 0; owed &= owed - 1 {
			b := w<<6 + bits.TrailingZeros64(owed)
			d := p.acked.due[b]
			costly := p.acked.costly(b, d)
			cheap, dear = cheap+bits.OnesCount64(d&^costly), dear+bits.OnesCount64(costly)
			width += s.widthOf(b, costly)
		}
	}
	p.cost.cheap = max(p.typical/typicalUnit, 1)
	if dear > 0 { // what the peer may not see does not count
		p.cost.dear = width/dear + wholeBits
	}
	return cheap*p.cost.cheap + dear*p.cost.dear
}

// costly returns those of some slots of a block that are sent whole.
func (p *tracker) costly(b int, d uint64) uint64 {
	return d & p.sight.view.sees(b, p.snap.slots.alive[b]) & (p.acks.none[b] | p.acks.large[b])
}

// plan is what a peer does in a tick.
type plan uint8

const (
	sendNothing plan = iota
	sendAll
	sendBest
)

// plan decides what to do with the budget: what is due is sent at once if there is room
// for it, and the best of it as soon as there are tokens for a packet worth its header.
func (p *sender) plan() plan {
	if !p.acked.itsTurn() {
		return sendNothing
	}
	if p.budget.rate == 0 || p.inOrder {
		return sendAll
	}
	need, room := p.need(), p.affordable()
	switch {
	case need+need/2 <= room:
		return sendAll
	case p.budget.tokens < min(int64(p.opts.mtu), max(p.budget.rate/p.budget.quantum(), minPacket))*int64(p.opts.tickRate):
		return sendNothing
	}
	return sendBest
}

// quantum returns how many packets a second a budget that is short is spent in, or larger ones.
func (b *budget) quantum() int64 {
	if b.control != nil {
		return adaptiveQuantum
	}
	return quantum
}

// itsTurn reports whether the peer may be sent state in the present tick.
func (p *tracker) itsTurn() bool { return p.inInterval() && !p.silence.paused }

// inInterval reports whether the present tick is one of the peer's send interval.
func (p *tracker) inInterval() bool {
	return p.interval == 1 || (p.snap.tick+p.phase)%p.interval == 0
}

// everyTick reports whether the peer may be sent state in every tick.
func (p *tracker) everyTick() bool { return p.interval == 1 && p.silence.length == 0 }

// press adds the weights of what waits to its urgency.
func (p *sender) press(c *chooser) {
	s, u := &p.snap.slots, &p.urgency
	u.grow(s.len())
	weights := s.weights.blocks
	if p.weigh != nil {
		weights = p.askWeights(c)
	}
	for b := range u.waiting {
		live, gone := p.acked.split(b, p.acked.due[b])
		p.acked.due[b] = live | gone
		u.gain(b, p.acked.due[b], &weights[b], live&^s.lively(b, live))
	}
}

// lively returns those of some slots of a block that have changed in the last restAfter ticks.
// What has not is more urgent: it won't be sent again soon.
func (t *slotTable) lively(b int, mask uint64) uint64 {
	return mask&t.news[b] | t.changedAfter(t.recent.now-restAfter, b, mask)
}

// askWeights returns the weights that the peer's own function gives to what waits.
func (p *sender) askWeights(c *chooser) []slicedWeights {
	s := &p.snap.slots
	for len(c.weights) < len(s.alive) {
		c.weights = append(c.weights, slicedWeights{})
	}
	c.asked, c.entities, c.said = c.asked[:0], c.entities[:0], c.said[:0]
	for b, d := range p.acked.due {
		c.weights[b].reset()
		live, gone := p.acked.split(b, d)
		for slot := range bitset.Slots(b, gone) {
			c.weights[b].set(slot, 1, 0)
		}
		for slot := range bitset.Slots(b, live) {
			if entity := s.info[slot].entity; !entity.IsZero() {
				c.asked = append(c.asked, int32(slot))
				c.entities, c.said = append(c.entities, entity), append(c.said, s.weight(slot))
			} else { // the resources
				c.weights[b].set(slot, s.weight(slot), 0)
			}
		}
	}
	if len(c.asked) > 0 {
		p.weigh(c.entities, c.said)
	}
	for i, slot := range c.asked {
		c.weights[slot>>6].set(int(slot), c.said[i], chanceOf(int(slot), uint32(p.snap.tick)))
	}
	return c.weights
}

// sendChosen sends of what is due as much as the budget allows, the most urgent first. What was
// chosen may turn out to be smaller than it was taken for: then there is another choice.
func (p *sender) sendChosen() {
	c := &p.runs.choice
	for range maxChoices {
		sent := p.acked.log.next
		p.choose(c)
		p.sendDue(c.chosen)
		if p.acked.log.next == sent || p.resume != 0 || p.behind != 0 || p.budget.tokens < int64(p.opts.mtu*p.opts.tickRate) {
			return
		}
	}
}

// choose chooses what is sent. What comes and goes has shares of its own, and competes for the
// rest.
func (p *sender) choose(c *chooser) {
	s, u, room := &p.snap.slots, &p.urgency, p.affordable()
	c.begin(s.len())
	used := 0
	if p.waitingFor(c, goes) {
		used += c.choose(u, room/structureShare, prices{cheap: endBits})
	}
	if p.waitingFor(c, comes) {
		used += c.choose(u, room/structureShare, p.cost)
	}
	if p.waitingFor(c, differs) {
		c.choose(u, room-room/margin-used, p.cost)
	}
	for _, b := range p.interest.groups.blocks {
		for slot := range bitset.Slots(int(b), c.chosen[b]&s.bound[b]) {
			p.chooseWith(slot, c.chosen)
		}
	}
}

// A share of the budget is kept for what is of a kind.
type share uint8

const (
	goes    share = iota // the peer is to learn that there is no such entity any more
	comes                // that there is
	differs              // whatever waits
)

// waitingFor makes what waits for a share the candidates, and reports whether there are any.
func (p *sender) waitingFor(c *chooser, of share) bool {
	alive := p.snap.slots.alive
	for w, owed := range p.acked.acks.owed {
		for ; owed != 0; owed &= owed - 1 {
			b := w<<6 + bits.TrailingZeros64(owed)
			d := p.acked.due[b]
			live := p.sight.view.sees(b, d&alive[b])
			switch of {
			case goes: // press has left nothing else that is due and not live
				c.add(b, d&^live, 0)
			case comes:
				c.add(b, live&^p.met[b], ^uint64(0))
			default:
				c.add(b, d, p.acked.costly(b, live))
			}
		}
	}
	return len(c.blocks) > 0
}

const (
	typicalUnit  = 16 // of Peer.typical, in a bit
	firstTypical = 76 * typicalUnit
)

// spending is what a peer has been sent.
type spending struct{ bits, updates, wholes, despawns int }

func (s *peerCounters) spending() spending {
	return spending{int(s.EntityBits), int(s.Updates), int(s.Wholes + s.Jumps), int(s.Despawns)}
}

// learn ends a tick for the budget: it notes what an update takes with all that belongs to it, as a
// moving mean, and for how long the budget has sufficed.
func (p *sender) learn() {
	if p.budget.rate == 0 {
		return
	}
	now, l := p.stats.spending(), &p.usage
	bits, updates := now.bits-l.spent.bits, now.updates-l.spent.updates
	if updates > 0 {
		bits := bits - (now.wholes-l.spent.wholes)*p.cost.dear - (now.despawns-l.spent.despawns)*endBits
		p.typical += (max(bits, 8)*typicalUnit/updates - p.typical) / 8
	}
	l.spent, l.most = now, max(bits, l.most-l.most/ampleTicks)
	if l.ample++; p.resume != 0 || p.planned == sendBest || p.planned == sendNothing {
		l.ample = 0
	}
}

// usage is what a budget has turned out to be good for.
type usage struct {
	spent spending
	most  int // bits in a tick, of late
	ample int // ticks in a row in which all was sent that was due
}

// ampleTicks is for how long a budget must have sufficed to count as ample.
const ampleTicks = 16

// ample reports whether the budget is as good as none: it has sufficed for a while, and would
// suffice for twice as much.
func (p *sender) ample() bool {
	return p.budget.rate == 0 || p.usage.ample >= ampleTicks && p.affordable() >= 2*p.usage.most+8*p.opts.mtu
}

// meet notes of which entities the peer knows that they are there: something of them was
// acknowledged, if only long ago.
func (p *sender) meet() {
	if p.budget.rate == 0 {
		return
	}
	s := &p.snap.slots
	p.met = p.met.Grown(s.len())
	for b := range p.met {
		p.met[b] = p.sight.view.sees(b, p.met[b]&^s.turned[b]) | p.snap.slots.alive[b]&^p.acked.acks.none[b]
	}
}

// wait ends a tick for what is due and was not sent.
func (p *sender) wait() {
	if p.budget.rate == 0 {
		p.urgency, p.met = urgency{}, nil
		return
	}
	p.urgency.wait(p.acked.due)
}

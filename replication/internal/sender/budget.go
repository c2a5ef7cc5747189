package sender

import (
	"math/bits"

	"github.com/arche-replicate/arche-replicate/delta"
	"github.com/arche-replicate/arche-replicate/replication/internal/ackstate"
	"github.com/arche-replicate/arche-replicate/replication/internal/bitset"
	"github.com/arche-replicate/arche-replicate/replication/internal/counters"
	"github.com/arche-replicate/arche-replicate/replication/internal/snapshot"
)

// A peer with less bandwidth than there is news gets what matters most: what has waited
// longest, times what it weighs. Nothing that waits is forgotten, so nothing starves.

// A budget is a token bucket. It counts in bytes times the tick rate, so that integers
// are exact.
type budget struct {
	Rate   int64 // bytes per second; 0: no limit
	Tokens int64 // what may be sent now; less than 0 by no more than a packet

	Control *RateControl // nil: the rate is fixed
}

// Set changes the rate.
func (b *budget) Set(rate int64) {
	if b.Rate == 0 {
		b.Tokens = 0
	}
	b.Rate = min(rate, MaxRate)
}

// MaxRate keeps tokens from overflowing.
const MaxRate = 1 << 40

// savings returns what the tokens grow up to: less by a packet than what may be sent at
// once, since the last packet that is begun may take more than there is.
func (p *Sender) savings() int64 {
	b, o := &p.Budget, p.opts
	saved := b.Rate * int64(p.acked.Interval)
	if b.Control == nil {
		saved = max(saved, b.Rate*int64(o.TickRate)/8)
	}
	return saved + int64(o.MTU*o.TickRate)
}

// earn adds the tokens of a tick.
func (p *Sender) earn() {
	if b := &p.Budget; b.Rate > 0 {
		if b.Control != nil {
			b.Rate = b.Control.Tick(p.snap.Tick, p.acked.Interval)
		}
		b.Tokens = min(b.Tokens+b.Rate, p.savings())
	}
}

// short reports whether the tokens are used up.
func (b *budget) short() bool { return b.Rate > 0 && b.Tokens <= 0 }

// spend takes the tokens for so many bytes.
func (b *budget) spend(bytes, tickRate int) {
	if b.Rate > 0 {
		b.Tokens -= int64(bytes * tickRate)
	}
	if b.Control != nil {
		b.Control.Spend(bytes)
	}
}

// What becomes of packets is told to what controls the rate, if it is not fixed.

func (b *budget) restart(now delta.Tick) {
	if b.Control != nil {
		b.Control.restart(now)
		b.Rate = b.Control.Budget()
	}
}

// deliver takes bytes for delivered, as nobody will say whether they were.
func (b *budget) deliver(bytes int) {
	if b.Control != nil {
		b.Control.deliver(bytes)
	}
}

func (b *budget) acknowledge(packet *ackstate.SentPacket, now delta.Tick) {
	if b.Control != nil && packet.Bytes > 0 {
		b.Control.Acknowledge(now, int(packet.Bytes), packet.Status == ackstate.SentLost)
	}
}

func (b *budget) sample(packet *ackstate.SentPacket, now delta.Tick) {
	if b.Control != nil && packet.Bytes > 0 {
		b.Control.Sample(packet.Tick, now-packet.Tick, int(packet.Bytes))
	}
}

func (b *budget) lose() {
	if b.Control != nil {
		b.Control.Lose()
	}
}

const (
	// structureShare is the share of the budget that is kept for what comes, and once more
	// for what goes.
	structureShare = 8
	// endBits is about what the entry of a despawn takes.
	endBits = 12
	// fullBits is about what the entry of a whole takes beside what any entry does.
	fullBits = 12
	// headerBits is about what a packet takes beside its entries.
	headerBits = 14 * 8

	maxChoices = 3 // in a tick

	margin = 32 // the share of the room that is left for entries that are longer than usual

	quantum         = 15  // a peer whose budget is short gets that many packets a second, or larger ones
	adaptiveQuantum = 30  // the same of a budget that adapts: many packets tell more about the path than few
	minPacket       = 100 // but not smaller than so many bytes
)

// affordable returns the bits that may be sent now: whole packets, if it is more than one.
func (p *Sender) affordable() int {
	o := p.opts
	bytes := int(min(p.Budget.Tokens/int64(o.TickRate), 1<<27))
	if bytes > o.MTU {
		bytes -= bytes % o.MTU
	}
	return 8*bytes - (bytes+o.MTU-1)/o.MTU*headerBits
}

// need returns about how many bits all that is due takes, and finds out what entries cost.
func (p *Sender) need() int {
	s := &p.snap.Slots
	cheap, dear, width := 0, 0, 0
	for w, blocks := range p.acked.Acks.DirtyBlocks {
		for ; blocks != 0; blocks &= blocks - 1 {
			b := w<<6 + bits.TrailingZeros64(blocks)
			d := p.acked.Dirty[b]
			costly := p.acked.Costly(b, d)
			cheap, dear = cheap+bits.OnesCount64(d&^costly), dear+bits.OnesCount64(costly)
			width += s.WidthOf(b, costly)
		}
	}
	p.cost.Cheap = max(p.typical/typicalUnit, 1)
	if dear > 0 { // what the peer may not see does not count
		p.cost.Dear = width/dear + fullBits
	}
	return cheap*p.cost.Cheap + dear*p.cost.Dear
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
func (p *Sender) plan() plan {
	if !p.acked.MaySendNow() {
		return sendNothing
	}
	if p.Budget.Rate == 0 || p.inOrder {
		return sendAll
	}
	need, room := p.need(), p.affordable()
	switch {
	case need+need/2 <= room:
		return sendAll
	case p.Budget.Tokens < min(int64(p.opts.MTU), max(p.Budget.Rate/p.Budget.quantum(), minPacket))*int64(p.opts.TickRate):
		return sendNothing
	}
	return sendBest
}

// quantum returns how many packets a second a budget that is short is spent in, or larger ones.
func (b *budget) quantum() int64 {
	if b.Control != nil {
		return adaptiveQuantum
	}
	return quantum
}

// press adds the weights of what waits to its urgency.
func (p *Sender) press(c *Chooser) {
	s, u := &p.snap.Slots, &p.Urgency
	u.Grow(s.Len())
	weights := s.Weights.Blocks
	if p.Weigh != nil {
		weights = p.askWeights(c)
	}
	for b := range u.Waiting {
		live, gone := p.acked.Split(b, p.acked.Dirty[b])
		p.acked.Dirty[b] = live | gone
		u.Gain(b, p.acked.Dirty[b], &weights[b], live&^s.Lively(b, live))
	}
}

// askWeights returns the weights that the peer's own function gives to what waits.
func (p *Sender) askWeights(c *Chooser) []snapshot.SlicedWeights {
	s := &p.snap.Slots
	for len(c.weights) < len(s.Alive) {
		c.weights = append(c.weights, snapshot.SlicedWeights{})
	}
	c.asked, c.entities, c.given = c.asked[:0], c.entities[:0], c.given[:0]
	for b, d := range p.acked.Dirty {
		c.weights[b].Reset()
		live, gone := p.acked.Split(b, d)
		for slot := range bitset.Slots(b, gone) {
			c.weights[b].Put(slot, 1, 0)
		}
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
		c.weights[slot>>6].Put(int(slot), c.given[i], snapshot.ChanceOf(int(slot), uint32(p.snap.Tick)))
	}
	return c.weights
}

// sendChosen sends of what is due as much as the budget allows, the most urgent first. What was
// chosen may turn out to be smaller than it was taken for: then there is another choice.
func (p *Sender) sendChosen() {
	c := &p.Worker.choice
	for range maxChoices {
		sent := p.acked.Log.Next
		p.choose(c)
		p.sendDirty(c.Chosen)
		if p.acked.Log.Next == sent || p.resume != 0 || p.behind != 0 || p.Budget.Tokens < int64(p.opts.MTU*p.opts.TickRate) {
			return
		}
	}
}

// choose chooses what is sent. What comes and goes has shares of its own, and competes for the
// rest.
func (p *Sender) choose(c *Chooser) {
	s, u, room := &p.snap.Slots, &p.Urgency, p.affordable()
	c.Begin(s.Len())
	used := 0
	if p.waitingFor(c, goes) {
		used += c.Choose(u, room/structureShare, Prices{Cheap: endBits})
	}
	if p.waitingFor(c, comes) {
		used += c.Choose(u, room/structureShare, p.cost)
	}
	if p.waitingFor(c, differs) {
		c.Choose(u, room-room/margin-used, p.cost)
	}
	for _, b := range p.interest.Groups.Blocks {
		for slot := range bitset.Slots(int(b), c.Chosen[b]&s.Bound[b]) {
			p.chooseWith(slot, c.Chosen)
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
func (p *Sender) waitingFor(c *Chooser, of share) bool {
	alive := p.snap.Slots.Alive
	for w, blocks := range p.acked.Acks.DirtyBlocks {
		for ; blocks != 0; blocks &= blocks - 1 {
			b := w<<6 + bits.TrailingZeros64(blocks)
			d := p.acked.Dirty[b]
			live := p.sight.View.Sees(b, d&alive[b])
			switch of {
			case goes: // press has left nothing else that is due and not live
				c.Add(b, d&^live, 0)
			case comes:
				c.Add(b, live&^p.Met[b], ^uint64(0))
			default:
				c.Add(b, d, p.acked.Costly(b, live))
			}
		}
	}
	return len(c.blocks) > 0
}

const (
	typicalUnit  = 16 // of Peer.typical, in a bit
	firstTypical = 76 * typicalUnit
)

// learn ends a tick for the budget: it notes what an update takes with all that belongs to it, as a
// moving mean, and for how long the budget has sufficed.
func (p *Sender) learn() {
	if p.Budget.Rate == 0 {
		return
	}
	now, l := p.stats.Spending(), &p.usage
	bits, updates := now.Bits-l.spent.Bits, now.Updates-l.spent.Updates
	if updates > 0 {
		bits := bits - (now.FullStates-l.spent.FullStates)*p.cost.Dear - (now.Despawns-l.spent.Despawns)*endBits
		p.typical += (max(bits, 8)*typicalUnit/updates - p.typical) / 8
	}
	l.spent, l.most = now, max(bits, l.most-l.most/ampleTicks)
	if l.ample++; p.resume != 0 || p.planned == sendBest || p.planned == sendNothing {
		l.ample = 0
	}
}

// usage is what a budget has turned out to be good for.
type usage struct {
	spent counters.Spending
	most  int // bits in a tick, of late
	ample int // ticks in a row in which all was sent that was due
}

// ampleTicks is for how long a budget must have sufficed to count as ample.
const ampleTicks = 16

// ample reports whether the budget is as good as none: it has sufficed for a while, and would
// suffice for twice as much.
func (p *Sender) ample() bool {
	return p.Budget.Rate == 0 || p.usage.ample >= ampleTicks && p.affordable() >= 2*p.usage.most+8*p.opts.MTU
}

// meet notes of which entities the peer knows that they are there: something of them was
// acknowledged, if only long ago.
func (p *Sender) meet() {
	if p.Budget.Rate == 0 {
		return
	}
	s := &p.snap.Slots
	p.Met = p.Met.Grown(s.Len())
	for b := range p.Met {
		p.Met[b] = p.sight.View.Sees(b, p.Met[b]&^s.Churned[b]) | p.snap.Slots.Alive[b]&^p.acked.Acks.None[b]
	}
}

// wait ends a tick for what is due and was not sent.
func (p *Sender) wait() {
	if p.Budget.Rate == 0 {
		p.Urgency, p.Met = Urgency{}, nil
		return
	}
	p.Urgency.Wait(p.acked.Dirty)
}

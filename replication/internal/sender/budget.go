package sender

import (
	"math"
	"math/bits"

	"github.com/arche-replicate/arche-replicate/replication/internal/ackstate"
	"github.com/arche-replicate/arche-replicate/replication/internal/choice"
	"github.com/arche-replicate/arche-replicate/replication/internal/counters"
	"github.com/arche-replicate/arche-replicate/replication/internal/ratecontrol"
)

// A budget is a peer's share of bandwidth: a token bucket, and estimates of what entries cost. It
// counts in bytes times the tick rate, so that integers are exact.
type budget struct {
	*peer

	Rate    int64                // bytes per second; 0: no limit
	Tokens  int64                // what state may be sent now; below 0 after packets that took more than there was
	debt    int64                // what messages took that is not paid yet
	Control *ratecontrol.Control // nil: the rate is fixed

	typical int               // mean bits of a state and its share of all overhead, in 1/typicalUnit; not of full ones
	cost    choice.Prices     // of entries, in the present tick
	firsts  int32             // states in the present tick, of slots of which the peer held nothing
	lapsing int32             // for so many ticks with packets, full states count as likely that had a baseline before
	parts   int32             // bits of parts of large states in the present tick
	full    int32             // bits of full states in the present tick
	spent   counters.Spending // up to the end of the last tick
	most    int32             // bits in a tick, lately
	enough  int32             // ticks in a row in which everything dirty was sent
}

const (
	// MaxRate keeps tokens from overflowing.
	MaxRate = 1 << 40

	despawnBits = 12     // of a despawn, about
	fullBits    = 12     // of the head of a full state, beyond that of an update, about
	headerBits  = 14 * 8 // of what surrounds the entries of a packet, about

	typicalUnit  = 16
	firstTypical = 76 * typicalUnit // until something was sent
	mostGrowth   = 4                // of the mean: how much more than that an update of a tick counts

	packetRate         = 15  // packets per second of a budget that is too small for larger ones
	adaptivePacketRate = 30  // the same of a budget that adapts: many packets reveal more about the path
	minPacket          = 100 // bytes that a packet is worth sending for
	minPart            = 200 // bytes of a part of a large state
	stateShare         = 4   // the least share of the tokens that state has, inverted
	ampleTicks         = 16  // in which a budget must have sufficed to count as ample
)

// Set changes the rate.
func (b *budget) Set(rate int64) {
	if b.Rate == 0 {
		b.Tokens, b.debt = 0, 0
	}
	b.Rate = min(rate, MaxRate)
}

// begin starts a session. Tokens are kept: a peer gains nothing by connecting again.
func (b *budget) begin() {
	b.restart()
	b.typical, b.spent = firstTypical, b.stats.Spending()
	b.firsts, b.parts, b.full, b.most, b.enough, b.lapsing = 0, 0, 0, 0, 0, 0
}

// restart drops what is known about the path.
func (b *budget) restart() {
	if b.Control != nil {
		b.Control.Restart(b.snap.Tick)
		b.Rate = b.Control.Budget()
	}
}

// savings returns the limit of the tokens: those of a packet more than may be sent at once, as the
// last packet may take more than there are.
func (b *budget) savings() int64 {
	saved := b.Rate * int64(b.acked.Interval)
	if b.Control == nil {
		saved = max(saved, b.Rate*int64(b.opts.TickRate)/8)
	}
	return saved + int64(b.opts.MTU)*int64(b.opts.TickRate)
}

// earn adds the tokens of a tick. All tokens beyond those of a packet pay for messages, or most of what the tick adds
// if that is more. State keeps the others: what messages wait for must be sent even if they alone take more than the
// budget.
func (b *budget) earn() {
	if b.Rate == 0 {
		return
	}
	if b.Control != nil {
		b.Rate = b.Control.Tick(b.snap.Tick, b.acked.Interval)
	}
	b.Tokens += b.Rate
	b.debt = min(b.debt, b.savings())
	paid := min(b.debt, max(b.Rate-b.Rate/stateShare, b.Tokens-b.quantum()))
	b.Tokens, b.debt = min(b.Tokens-paid, b.savings()), b.debt-paid
}

// short reports whether the tokens are used up.
func (b *budget) short() bool { return b.Rate > 0 && b.Tokens <= 0 }

// affords reports whether there are tokens for some packets of full size.
func (b *budget) affords(packets int) bool {
	return b.Tokens >= int64(packets)*int64(b.opts.MTU)*int64(b.opts.TickRate)
}

// affordable returns the bits of entries that may be sent now: those of full packets, if there is
// room for more than one.
func (b *budget) affordable() int {
	mtu := b.opts.MTU
	bytes := int(min(b.Tokens/int64(b.opts.TickRate), 1<<27))
	if bytes > mtu {
		bytes -= bytes % mtu
	}
	return 8*bytes - (bytes+mtu-1)/mtu*headerBits
}

// quantum returns the tokens that a short budget saves before it sends a packet.
func (b *budget) quantum() int64 {
	rate := int64(packetRate)
	if b.Control != nil {
		rate = adaptivePacketRate
	}
	return min(int64(b.opts.MTU), max(b.Rate/rate, minPacket)) * int64(b.opts.TickRate)
}

// partSize returns how many bytes of a large state a part has: no more than a short budget saves for a packet, so that
// other entries have their turn between two parts.
func (b *budget) partSize() int {
	if b.Rate == 0 {
		return b.opts.MTU - partOverhead
	}
	return min(b.opts.MTU-partOverhead, max(int(b.quantum()/int64(b.opts.TickRate)), minPart))
}

// spend takes the tokens for a packet.
func (b *budget) spend(bytes int) {
	if b.Rate > 0 {
		b.Tokens -= int64(bytes) * int64(b.opts.TickRate)
	}
	if b.Control != nil {
		b.Control.Spend(bytes)
	}
}

// bookFull takes note of a full state with so many bits of rows.
func (b *budget) bookFull(bits int32) { b.full += bits + fullBits }

// charge takes note of a packet that is sent even if there are no tokens. Nothing acknowledges it, so it counts as
// delivered.
func (b *budget) charge(bytes int) {
	if b.Rate == 0 {
		return
	}
	b.debt += int64(bytes) * int64(b.opts.TickRate)
	if b.Control != nil {
		b.Control.Spend(bytes)
		b.Control.Deliver(bytes)
	}
}

// acknowledge reports an acknowledged packet to the rate control.
func (b *budget) acknowledge(packet *ackstate.SentPacket) {
	if b.Control != nil && packet.Bytes > 0 {
		b.Control.Acknowledge(b.snap.Tick+1, int(packet.Bytes), packet.Status == ackstate.SentLost)
	}
}

// sample reports the round trip of a packet to the rate control.
func (b *budget) sample(packet *ackstate.SentPacket) {
	if b.Control != nil && packet.Bytes > 0 {
		b.Control.Sample(packet.Tick, b.snap.Tick+1-packet.Tick, int(packet.Bytes))
	}
}

// lose reports a lost packet to the rate control.
func (b *budget) lose() {
	if b.Control != nil {
		b.Control.Lose()
	}
}

// need estimates the cost of entries and returns the bits of everything dirty, or as soon as they are more than some
// limit, of part of it.
func (b *budget) need(limit int) int {
	need, full, width := b.estimate(limit)
	b.cost.Cheap = b.cheap()
	if full > 0 && need <= limit {
		b.cost.Dear = width/full + fullBits
	}
	return need
}

// cheap returns about how many bits an update takes.
func (b *budget) cheap() int { return max(b.typical/typicalUnit, 1) }

// Backlog returns about how many bytes what is dirty takes, if there is a budget.
func (b *budget) Backlog() int {
	if b.Rate == 0 {
		return 0
	}
	bits, _, _ := b.estimate(math.MaxInt)
	return (bits + 7) / 8
}

// estimate returns about how many bits everything dirty takes, and of that the number of full states and the bits of
// their rows; or as soon as that is more than some limit, of part of it.
func (b *budget) estimate(limit int) (need, full, width int) {
	cheap := b.cheap()
	for block := range b.acked.DirtyBlocks.All() {
		dirty := b.acked.Dirty[block]
		costly := b.acked.Costly(block, dirty)
		need += bits.OnesCount64(dirty&^costly) * cheap
		if costly != 0 {
			n, w := bits.OnesCount64(costly), b.snap.Slots.EstimateWidths(block, costly, b.snap.Tick)
			full, width, need = full+n, width+w, need+w+n*fullBits
		}
		if need > limit {
			break
		}
	}
	return need, full, width
}

// learn ends a tick: it updates the typical cost of a state from what was sent, and counts for how long
// the budget has sufficed.
func (b *budget) learn(sentAll bool) {
	now := b.stats.Spending()
	bits, states, full, despawns := now.Since(b.spent)
	if states -= full; states > 0 {
		others := int(b.full) + despawns*despawnBits + int(b.parts)
		// Overhead of many full states must not look like a few large updates.
		seen := min(max(bits-others, 8)*typicalUnit/states, mostGrowth*b.typical)
		b.typical += (seen - b.typical) / 8
	}
	if full > int(b.firsts) {
		b.lapsing = int32(b.opts.Window)
	} else if bits > 0 { // a budget may take longer than the window to save for a packet
		b.lapsing = max(b.lapsing-1, 0)
	}
	b.firsts, b.parts, b.full, b.spent, b.most = 0, 0, 0, now, max(int32(bits), b.most-b.most/ampleTicks)
	if b.enough++; !sentAll {
		b.enough = 0
	}
}

// ample reports whether the budget is as good as none: it has sufficed for a while and would
// suffice for twice as much.
func (b *budget) ample() bool {
	return b.Rate == 0 || b.enough >= ampleTicks && b.affordable() >= 2*int(b.most)+8*b.opts.MTU
}

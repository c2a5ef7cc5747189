package netsim

import (
	"errors"
	"fmt"
	"math/rand/v2"
)

// ErrTooLarge is returned by [Pipe.Send], wrapped with the sizes, for a packet that exceeds
// [Config.MTU].
var ErrTooLarge = errors.New("packet exceeds the MTU")

// maxPending limits the packets that a pipe holds, so a test that forgets to step or to receive
// does not use up all memory.
const maxPending = 1 << 16

// minBuffer is the capacity of new packet buffers: any datagram that crosses an Ethernet
// unfragmented fits, even after corruption extended it.
const minBuffer = 1536

// Pipe is one direction of a simulated link. It is not safe for concurrent use.
type Pipe struct {
	odds  odds
	now   int64
	limit int // packets inside
	stats Stats

	seed        uint64   // of the packets' dice
	corruptSeed uint64   // of damage to packets
	outages     rand.PCG // for the beginning and end of bursts
	outage      bool

	own     Bottleneck  // the pipe's own
	through *Bottleneck // where packets wait: own, or a shared one
	waiting int         // number of packets waiting there
	flight  flight
	newest  uint64 // sequence number of the latest packet delivered

	lent []byte   // the packet that the receiver is reading
	free [][]byte // buffers to use again
}

// packet is a packet inside the pipe, which owns data.
type packet struct {
	data []byte
	seq  uint64 // number of packets accepted by Send before this one
}

// NewPipe returns a pipe at tick 0. Pipes with different seeds are independent, even if the seeds are neighbours.
//
// Panics if the configuration is not valid, see [Config.Validate].
func NewPipe(seed uint64, cfg Config) *Pipe {
	seeds := rand.NewPCG(seed, 0)
	p := &Pipe{
		odds:        cfg.compile(),
		limit:       maxPending,
		seed:        seeds.Uint64(),
		corruptSeed: seeds.Uint64(),
	}
	p.outages.Seed(seeds.Uint64(), 0)
	p.join(cfg)
	p.own.queue.step(p.own.bandwidth)
	return p
}

// join makes packets wait at the bottleneck of a compiled configuration.
func (p *Pipe) join(cfg Config) {
	p.own.set(p.odds)
	p.through = &p.own
	if cfg.Through != nil {
		p.through = cfg.Through
	}
}

// SetConfig changes the configuration, for packets that enter the line from now on. An outage ends if the new
// configuration has none. Packets waiting for bandwidth leave at the new rate; those waiting at a shared [Bottleneck]
// stay there.
//
// Panics if the configuration is not valid, see [Config.Validate].
func (p *Pipe) SetConfig(cfg Config) {
	p.odds = cfg.compile()
	if p.odds.burstStart == 0 {
		p.outage = false
	}
	p.join(cfg)
	p.own.drain(0)
}

// Send puts a copy of the packet into the pipe. A lost packet is not an error, as on a real link: Send fails only with
// an error that wraps [ErrTooLarge], and then nothing is sent. The method value pipe.Send serves as the send function
// of a peer or client.
func (p *Pipe) Send(data []byte) error {
	if mtu := p.odds.mtu; mtu > 0 && len(data) > mtu {
		return fmt.Errorf("netsim: %w: %d bytes, at most %d pass", ErrTooLarge, len(data), mtu)
	}
	seq := p.stats.Sent
	p.stats.Sent++
	p.stats.SentBytes += uint64(len(data))

	if p.Pending() >= p.limit {
		p.stats.Dropped++
		return nil
	}
	p.through.take(p, data, seq)
	return nil
}

// Step advances time by one tick.
func (p *Pipe) Step() {
	p.now++
	// One draw per tick whatever the state, so that outages depend on the tick only.
	switch draw := p.outages.Uint64(); {
	case p.outage:
		p.outage = !p.odds.burstEnd.holds(draw)
	default:
		p.outage = p.odds.burstStart.holds(draw)
	}
	p.own.queue.step(p.own.bandwidth)
	p.own.drain(0)
}

// advanceTo steps until a tick of a clock. If that is far away, time jumps first.
func (p *Pipe) advanceTo(tick int64) {
	p.now = max(p.now, tick-maxSteps)
	for p.now < tick {
		p.Step()
	}
}

// next returns the tick at which a packet arrives or the queue moves: at the earliest now, or never.
func (p *Pipe) next() int64 {
	tick := int64(never)
	if len(p.flight.heap) > 0 {
		tick = (p.flight.heap[0].arrival + instantOfTick(1) - 1).tick()
	}
	if p.waiting > 0 {
		tick = min(tick, p.now+1)
	}
	return tick
}

// enter decides the fate of a packet that enters the line at a tick.
func (p *Pipe) enter(pk packet, now int64) {
	dice := roll(p.seed, pk.seq)
	switch {
	case p.outage:
		p.stats.Outage++
		p.recycle(pk.data)
		return
	case p.odds.loss.holds(dice.loss):
		p.stats.Lost++
		p.recycle(pk.data)
		return
	}
	if p.odds.duplicate.holds(dice.duplicate) && p.Pending()+1 < p.limit {
		p.stats.Duplicated++
		// The copy is made first, because the original may be damaged below.
		twin := packet{p.clone(pk.data), pk.seq}
		p.launch(pk, now, &dice.copies[0], 0)
		p.launch(twin, now, &dice.copies[1], 1)
		return
	}
	p.launch(pk, now, &dice.copies[0], 0)
}

// launch puts one copy of a packet in flight.
func (p *Pipe) launch(pk packet, now int64, dice *copyDice, copyIndex uint64) {
	if p.odds.corrupt.holds(dice.corrupt) {
		var pcg rand.PCG
		pcg.Seed(p.corruptSeed, pk.seq<<1|copyIndex)
		pk.data = corrupt(pk.data, p.odds.mtu, &pcg)
		p.stats.Corrupted++
	}
	p.flight.push(pk, instantOfTick(now)+p.odds.delay(dice))
}

// Next removes and returns the next packet that has arrived, or reports false if there is none until the next Step. The
// slice belongs to the pipe; it may be overwritten until the next call of Next or [Pipe.Receive].
func (p *Pipe) Next() ([]byte, bool) {
	if p.lent != nil {
		p.recycle(p.lent)
		p.lent = nil
	}
	if !p.arrival() {
		return nil, false
	}
	f := p.flight.pop()
	p.stats.Delivered++
	p.stats.DeliveredBytes += uint64(len(f.data))
	if f.seq < p.newest {
		p.stats.Reordered++
	} else {
		p.newest = f.seq
	}
	p.lent = f.data
	return f.data, true
}

// Receive calls fn with all packets that have arrived. The slice belongs to the pipe; fn may overwrite it until it
// returns. Packets that fn sends into the same pipe are left for a later call.
func (p *Pipe) Receive(fn func(packet []byte)) {
	// Packets that enter from here on arrive no sooner and have a higher order, so they come after
	// all earlier ones.
	entered := p.flight.entered
	for p.arrival() && p.flight.heap[0].order < entered {
		data, _ := p.Next()
		fn(data)
	}
}

func (p *Pipe) arrival() bool {
	return len(p.flight.heap) > 0 && p.flight.heap[0].arrival <= instantOfTick(p.now)
}

// Now returns the current tick: the number of steps taken.
func (p *Pipe) Now() int64 { return p.now }

// Stats returns the counters so far.
func (p *Pipe) Stats() Stats { return p.stats }

// Pending returns the number of packets and copies inside the pipe: waiting, in flight, or arrived but not received.
func (p *Pipe) Pending() int { return p.waiting + len(p.flight.heap) }

// clone copies a packet into a buffer of the pipe.
func (p *Pipe) clone(data []byte) []byte {
	var buf []byte
	if last := len(p.free) - 1; last >= 0 {
		buf, p.free[last] = p.free[last], nil
		p.free = p.free[:last]
	}
	if cap(buf) < len(data) || buf == nil {
		buf = make([]byte, 0, max(len(data)+maxExtend, minBuffer))
	}
	return append(buf[:0], data...)
}

func (p *Pipe) recycle(buf []byte) { p.free = append(p.free, buf) }

package netsim

// A Bottleneck is a line of limited bandwidth that several pipes lead through, set in
// [Config.Through]: two players behind one router, or a server's uplink. Its packets wait in one
// queue, first in, first out, whatever pipe they are from; a packet that the queue has no room for
// is dropped. Latency, loss and the like are those of each pipe.
//
// Call Step once per tick, before the pipes are stepped. A pipe alone on a Bottleneck then behaves
// as if it had the same Bandwidth and QueueLimit itself, but that outages are one tick late.
// Like a Pipe it is not safe for concurrent use.
type Bottleneck struct {
	queue     queue
	bandwidth int // bytes per tick; 0: unlimited
	limit     int // bytes
}

// NewBottleneck returns a line that so many bytes may enter each tick, see [Config.Bandwidth], with a
// queue of so many bytes, see [Config.QueueLimit].
//
// Panics: if [Config.Validate] would not accept them.
func NewBottleneck(bandwidth, queueLimit int) *Bottleneck {
	b := &Bottleneck{}
	b.SetLimits(bandwidth, queueLimit)
	b.queue.step(b.bandwidth)
	return b
}

// SetLimits changes the bandwidth and the queue's limit. Packets that wait stay, and leave at the new rate.
//
// Panics: if [Config.Validate] would not accept them.
func (b *Bottleneck) SetLimits(bandwidth, queueLimit int) {
	b.set(Config{Bandwidth: bandwidth, QueueLimit: queueLimit}.compile())
}

func (b *Bottleneck) set(o odds) {
	b.bandwidth, b.limit = o.bandwidth, o.queueLimit
	if b.queue.len() == 0 {
		b.queue.credit = min(b.queue.credit, b.bandwidth)
	}
}

// Step moves time on by one tick.
func (b *Bottleneck) Step() {
	b.queue.step(b.bandwidth)
	b.drain(1)
}

// Waiting is the number of bytes in the queue.
func (b *Bottleneck) Waiting() int { return b.queue.bytes }

// take queues a packet or lets it enter its pipe's line.
func (b *Bottleneck) take(p *Pipe, data []byte, seq uint64) {
	switch {
	case b.queue.len() == 0 && b.queue.passes(len(data), b.bandwidth):
		p.enter(packet{p.clone(data), seq}, p.now)
	case b.queue.len() > 0 && b.queue.bytes+len(data) > b.limit:
		p.stats.Dropped++
	default:
		b.queue.push(waiting{packet{p.clone(data), seq}, p})
		p.waiting++
	}
}

// drain lets waiting packets enter their lines as far as bandwidth allows, so many ticks after those to which their
// pipes have been stepped.
func (b *Bottleneck) drain(later int64) {
	for {
		next, ok := b.queue.next(b.bandwidth)
		if !ok {
			return
		}
		next.pipe.waiting--
		next.pipe.enter(next.packet, next.pipe.now+later)
	}
}

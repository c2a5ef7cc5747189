package netsim

// A Bottleneck is a line of limited bandwidth that several pipes share, set in [Config.Through]: two players behind one
// router, or a server's uplink. Its packets wait in one first-in, first-out queue. Latency, loss and everything else
// are those of each pipe; outages are one tick late.
//
// Call Step once per tick, before stepping the pipes. It is not safe for concurrent use.
type Bottleneck struct {
	queue     queue
	bandwidth int // bytes per tick; 0: unlimited
	limit     int // bytes
}

// NewBottleneck returns a line with the given [Config.Bandwidth] and [Config.QueueLimit], in bytes.
//
// Panics if [Config.Validate] would not accept them.
func NewBottleneck(bandwidth, queueLimit int) *Bottleneck {
	b := &Bottleneck{}
	b.SetLimits(bandwidth, queueLimit)
	b.queue.step(b.bandwidth)
	return b
}

// SetLimits changes the bandwidth and the queue's limit. Waiting packets stay, and leave at the new rate.
//
// Panics like [NewBottleneck].
func (b *Bottleneck) SetLimits(bandwidth, queueLimit int) {
	b.set(Config{Bandwidth: bandwidth, QueueLimit: queueLimit}.compile())
}

func (b *Bottleneck) set(o odds) {
	b.bandwidth, b.limit = o.bandwidth, o.queueLimit
	if b.queue.len() == 0 {
		b.queue.credit = min(b.queue.credit, b.bandwidth)
	}
}

// Step advances time by one tick.
func (b *Bottleneck) Step() {
	b.queue.step(b.bandwidth)
	b.drain(1)
}

// Waiting returns the number of bytes in the queue.
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

// drain lets waiting packets enter their lines as far as the bandwidth allows. later is the number
// of ticks by which the bottleneck is ahead of its pipes.
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

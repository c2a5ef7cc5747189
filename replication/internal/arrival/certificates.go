package arrival

import "github.com/arche-replicate/arche-replicate/delta"

// Certificates remember what the latest packets certified (see Settled), to find out what the client knew
// when a state came: as of which tick everything. It works as receive.Settling does, which is the rule.
type Certificates struct {
	packets [certified]certificate // by sequence modulo their number
	newest  uint32                 // sequence of the newest one

	answers [32]answer // by tick modulo their number: the blends of a view ask the same few
	changes uint32     // of the packets so far
}

// An answer is what At returns for a tick, until the packets change.
type answer struct {
	tick, known delta.Tick
	after       uint32 // changes
	ok          bool
}

type certificate struct {
	sequence   uint32
	tick, base delta.Tick
	interval   uint8 // in ticks
	settled    bool
	acked      bool
}

// certified is the number of packets that are remembered, a power of two: those of a few dozen ticks, of many packets
// each if the world takes so many.
const certified = 512

// Sent notes a packet.
func (c *Certificates) Sent(sequence uint32, tick, base, interval delta.Tick, settled bool) {
	c.packets[sequence%certified] = certificate{sequence, tick, base, uint8(interval), settled, false}
	c.newest = sequence
	c.changes++
}

// Acknowledge notes that a packet arrived.
func (c *Certificates) Acknowledge(sequence uint32) {
	if p := &c.packets[sequence%certified]; p.sequence == sequence {
		p.acked = true
		c.changes++
	}
}

// At returns the tick as of which the client knew everything when the packets up to a tick had come.
func (c *Certificates) At(tick delta.Tick) (known delta.Tick, ok bool) {
	a := &c.answers[tick%delta.Tick(len(c.answers))]
	if a.tick != tick || a.after != c.changes {
		a.tick, a.after = tick, c.changes
		a.known, a.ok = c.find(tick)
	}
	return a.known, a.ok
}

func (c *Certificates) find(tick delta.Tick) (known delta.Tick, ok bool) {
	for q := c.newest; c.newest-q < certified; q-- {
		p := &c.packets[q%certified]
		if p.sequence != q {
			return 0, false
		}
		if p.tick.After(tick) || !p.acked || !p.settled {
			continue
		}
		if known, ok = c.holds(p); ok {
			if before := p.tick - delta.Tick(p.interval); before.After(known) {
				known = before
			}
			return known, true
		}
	}
	return 0, false
}

// holds returns the tick of the state packet before one, if the client has all packets from its base on.
func (c *Certificates) holds(p *certificate) (before delta.Tick, ok bool) {
	for q := p.sequence - 1; c.newest-q < certified; q-- {
		e := &c.packets[q%certified]
		if e.sequence != q || !e.acked {
			return 0, false
		}
		if !ok && e.tick.Before(p.tick) {
			before, ok = e.tick, true
		}
		if ok && !e.tick.After(p.base) {
			return before, true
		}
	}
	return 0, false
}

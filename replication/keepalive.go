package replication

import "github.com/arche-replicate/arche-replicate/replication/internal/wire"

// A peer that is sent nothing for a second is sent an empty state packet, so that its
// client knows that the server lives and what tick it is, and answers. A silent one is sent them
// more often at first, instead of state.

// tellTicks is after how many quiet ticks the client is told by an empty packet that its
// session is in force, or that all is complete. Mostly others tell it sooner.
const tellTicks = 8

// maxTells bounds how often it is told so: packets get lost, and so does what says that they came.
const maxTells = 8

// keepAlive is the state of a peer that tells when it is to be sent an empty packet.
type keepAlive struct {
	next  uint32 // sequence of the next packet, at the end of the last tick
	quiet uint32 // ticks since then without a packet
	told  bool   // that all is complete
	in    uint32 // sequence of a packet that told so
	tells uint8  // empty packets of which the client was not known to have been told so
	buf   [wire.ChecksumSize + longHeader + 1]byte
}

const longHeader = 1 + 4 + 4

// keepAliveTicks returns after how many quiet ticks an empty packet is sent: a second, or
// less where silence has an end sooner.
func (o *serverOptions) keepAliveTicks() uint32 {
	if o.timeout > 0 {
		return uint32(max(1, min(o.tickRate, o.timeout/4)))
	}
	return uint32(o.tickRate)
}

// keep ends a tick of a connected peer: if nothing was sent for long, an empty packet is.
func (p *sender) keep() {
	k, news := &p.alive, p.acked.join.settle(&p.snap.slots, &p.sight.view, &p.acked.acks)
	if k.next != p.acked.log.next {
		k.next, k.quiet = p.acked.log.next, 0
		k.tell(p.acked.log.next, p.acked.join.complete && !news) // what was sent did not know the news
		return
	}
	k.quiet++
	wait, unsure := p.opts.keepAliveTicks(), !p.acked.heard || p.acked.join.complete && (!k.told || int32(p.acked.recentSequence-k.in) < 0)
	if unsure && k.tells < maxTells {
		wait = min(wait, tellTicks)
	}
	if p.acked.silence.length > 0 {
		wait = min(wait, p.acked.silence.pause())
	}
	if k.quiet < wait || !p.acked.inInterval() || p.acked.log.full() {
		return
	}
	p.sendEmpty()
	if unsure {
		k.tells++
	}
	k.next, k.quiet = p.acked.log.next, 0
	k.tell(p.acked.log.next, p.acked.join.complete)
}

// tell notes whether the latest packet told that all is complete.
func (k *keepAlive) tell(next uint32, complete bool) {
	if complete && !k.told {
		k.told, k.in = true, next-1
	}
}

// sendEmpty sends a state packet without entries.
func (p *sender) sendEmpty() {
	s, seal := p.snap, p.seal
	h := wire.StateHeader{Sequence: p.acked.log.next, Tick: uint32(s.tick), Long: !p.acked.near(), Complete: p.acked.join.complete}
	packet := p.alive.buf[:seal.Size()+h.Size()+1]
	if p.compact {
		packet = packet[:len(packet)-1]
		h.Put(packet[seal.Size():])
	} else {
		h.Put(packet[seal.Size():])
		packet[len(packet)-1] = 0 // an order of gaps
		packet[seal.Size()] |= (8 - wire.GapOrderBits) << wire.PadShift
		p.stats.EntityBits += wire.GapOrderBits
	}
	p.acked.log.begin(s.tick).status = sentLost // nothing waits for it
	p.acked.log.commit()
	p.acked.silence.skip(p.acked.log.next)
	seal.Write(packet, h.Sequence, h.Tick)
	p.stats.Packets++
	p.stats.Bytes += uint64(len(packet))
	p.budget.spend(len(packet), p.opts.tickRate)
	if p.send(packet) != nil {
		p.stats.SendErrors++
	}
}

package sender

import (
	"github.com/arche-replicate/arche-replicate/replication/internal/ackstate"
	"github.com/arche-replicate/arche-replicate/replication/internal/wire"
)

// A peer that is sent nothing for a second is sent an empty state packet, so that its
// client knows that the server lives and what tick it is, and answers. A silent one is sent them
// more often at first, instead of state.

// CompleteTicks is after how many quiet ticks the client is told by an empty packet that its
// session is in force, or that all is complete. Mostly others tell it sooner.
const CompleteTicks = 8

// MaxCompletes bounds how often it is told so: packets get lost, and so does what says that they came.
const MaxCompletes = 8

// KeepAlive is the state of a peer that tells when it is to be sent an empty packet.
type KeepAlive struct {
	next            uint32 // sequence of the next packet, at the end of the last tick
	quiet           uint32 // ticks since then without a packet
	Complete        bool   // that all is complete
	in              uint32 // sequence of a packet that told so
	sentUnconfirmed uint8  // empty packets of which the client was not known to have been told so
	buf             [wire.ChecksumSize + longHeader + 1]byte
}

const longHeader = 1 + 4 + 4

// Keep ends a tick of a connected peer: if nothing was sent for long, an empty packet is.
func (p *Sender) Keep() {
	k, changed := &p.Alive, p.acked.Join.Settle(&p.snap.Slots, &p.sight.View, &p.acked.Acks)
	if k.next != p.acked.Log.Next {
		k.next, k.quiet = p.acked.Log.Next, 0
		k.noteComplete(p.acked.Log.Next, p.acked.Join.Complete && !changed) // what was sent did not know the news
		return
	}
	k.quiet++
	wait, unsure := p.opts.KeepAliveTicks(), !p.acked.AnyAcked || p.acked.Join.Complete && (!k.Complete || int32(p.acked.RecentSequence-k.in) < 0)
	if unsure && k.sentUnconfirmed < MaxCompletes {
		wait = min(wait, CompleteTicks)
	}
	if p.acked.Silence.Length > 0 {
		wait = min(wait, p.acked.Silence.Pause())
	}
	if k.quiet < wait || !p.acked.InInterval() || p.acked.Log.Full() {
		return
	}
	p.sendEmpty()
	if unsure {
		k.sentUnconfirmed++
	}
	k.next, k.quiet = p.acked.Log.Next, 0
	k.noteComplete(p.acked.Log.Next, p.acked.Join.Complete)
}

// noteComplete notes whether the latest packet told that all is complete.
func (k *KeepAlive) noteComplete(next uint32, complete bool) {
	if complete && !k.Complete {
		k.Complete, k.in = true, next-1
	}
}

// sendEmpty sends a state packet without entries.
func (p *Sender) sendEmpty() {
	s, key := p.snap, p.key
	h := wire.StateHeader{Sequence: p.acked.Log.Next, Tick: uint32(s.Tick), Long: !p.acked.Near(), Complete: p.acked.Join.Complete}
	packet := p.Alive.buf[:key.Size()+h.Size()+1]
	if p.Packet.Compact != nil {
		packet = packet[:len(packet)-1]
		h.Put(packet[key.Size():])
	} else {
		h.Put(packet[key.Size():])
		packet[len(packet)-1] = 0 // an order of gaps
		packet[key.Size()] |= (8 - wire.GapOrderBits) << wire.PadShift
		p.stats.EntityBits += wire.GapOrderBits
	}
	p.acked.Log.Begin(s.Tick).Status = ackstate.SentLost // nothing waits for it
	p.acked.Log.Commit()
	p.acked.Silence.Skip(p.acked.Log.Next)
	key.Write(packet, h.Sequence, h.Tick)
	p.stats.Packets++
	p.stats.Bytes += uint64(len(packet))
	p.Budget.spend(len(packet), p.opts.TickRate)
	if p.Send(packet) != nil {
		p.stats.SendErrors++
	}
}

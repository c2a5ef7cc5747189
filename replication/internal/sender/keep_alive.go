package sender

import (
	"github.com/arche-replicate/arche-replicate/replication/internal/ackstate"
	"github.com/arche-replicate/arche-replicate/replication/internal/wire"
)

// An empty state packet shows the client that the server is alive and what tick it is, and makes it answer. A peer that
// was sent nothing for a second gets one; one that does not answer any more gets them in place of states.

const (
	// CompleteTicks is the number of quiet ticks after which an empty packet informs the client that its session is in
	// force, or that it has everything. Mostly other packets do so before.
	CompleteTicks = 8
	// MaxCompletes bounds the number of such packets: they may get lost, and so may their acks.
	MaxCompletes = 8
)

// KeepAlive decides when a peer is sent an empty packet.
type KeepAlive struct {
	next            uint32 // sequence of the next packet, at the end of the last tick
	quiet           uint32 // ticks without a packet since then
	Complete        bool   // a packet with the complete flag was sent
	in              uint32 // the sequence of the first such packet
	sentUnconfirmed uint8  // empty packets while it was not known that the client has received the flag
	buf             [wire.ChecksumSize + wire.MaxStateHeader + 1]byte
}

// keep ends a tick of a connected peer.
func (k *KeepAlive) keep(w *packetWriter) {
	acked := w.acked
	changed := acked.Join.Settle(&w.snap.Slots, &w.sight.View, &acked.Acks)
	if k.next != acked.Log.Next {
		k.note(acked.Log.Next, acked.Join.Complete && !changed) // Settle ran after the packets were written
		return
	}
	k.quiet++
	wait := w.opts.KeepAliveTicks()
	unsure := !acked.AnyAcked || acked.Join.Complete && (!k.Complete || int32(acked.RecentSequence-k.in) < 0)
	if unsure && k.sentUnconfirmed < MaxCompletes {
		wait = min(wait, CompleteTicks)
	}
	if acked.Silence.Length > 0 {
		wait = min(wait, acked.Silence.Pause())
	}
	if k.quiet < wait || !acked.InInterval() || acked.Log.Full() {
		return
	}
	k.sendEmpty(w)
	if unsure {
		k.sentUnconfirmed++
	}
	k.note(acked.Log.Next, acked.Join.Complete)
}

// note notes that packets were sent, and whether the last one, which is before a sequence, had the complete flag.
func (k *KeepAlive) note(next uint32, complete bool) {
	k.next, k.quiet = next, 0
	if complete && !k.Complete {
		k.Complete, k.in = true, next-1
	}
}

// sendEmpty sends a state packet without entries.
func (k *KeepAlive) sendEmpty(w *packetWriter) {
	h, key, log := w.nextHeader(w.snap.Tick-1), &w.out.key, &w.acked.Log
	packet := k.buf[:key.Size()+h.Size()]
	h.Put(packet[key.Size():])
	log.Begin(w.snap.Tick).Status = ackstate.SentLost // nothing waits for its ack
	log.Commit(w.acked.Interval)
	w.acked.Silence.Skip(log.Next)
	key.Write(packet, h.Sequence, h.Tick)
	w.stats.Packets++
	w.stats.Bytes += uint64(len(packet))
	w.budget.spend(len(packet))
	w.out.Transmit(packet)
}

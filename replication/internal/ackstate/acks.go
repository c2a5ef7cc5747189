package ackstate

import (
	"math/bits"
	"slices"

	"github.com/arche-replicate/arche-replicate/delta"
	"github.com/arche-replicate/arche-replicate/replication/internal/baseline"
	"github.com/arche-replicate/arche-replicate/replication/internal/bitset"
	"github.com/arche-replicate/arche-replicate/replication/internal/snapshot"
	"github.com/arche-replicate/arche-replicate/replication/internal/wire"
)

// Resolve notes which packets an ack confirms, and which baselines the client reports missing.
func (p *Tracker) Resolve(a *wire.Ack) {
	p.Silence.end(p.Log.Next)
	newest := a.Sequence
	if a.Count > 0 && p.Log.Find(newest) == nil {
		p.stats.RefusedAcks++ // never sent, or ancient
		newer := !p.AnyAcked || int32(newest-p.RecentSequence) > 0
		if at, ok := p.Log.sentAt(newest, p.Snap.Tick); ok && newer && a.Words[0]&1 != 0 {
			// The round trip has become so long that the packet counted as lost and was forgotten.
			// Without this sample that would go on forever.
			p.Trip.Sample(p.Snap.Tick + 1 - at)
		}
		a.Count = 0
	}
	if a.Count > 0 && a.Words[0]&1 != 0 {
		// The newest packet arrived just before the ack left. The others may have arrived long ago,
		// in an earlier ack that was lost, so they don't measure the round trip.
		if sent := p.Log.Find(newest); sent.Status != SentAcked {
			p.Trip.Sample(p.Snap.Tick + 1 - sent.Tick)
			p.outcome.Timed(sent)
		}
	}
	for i, word := range a.Words[:a.Count] {
		first := newest - uint32(i*32)
		for word = p.history.add(first, word); word != 0; word &= word - 1 {
			sequence := first - uint32(bits.TrailingZeros32(word))
			if sent := p.Log.Find(sequence); sent != nil {
				p.Acknowledge(sent, sequence)
			} // otherwise it was resolved long ago
		}
	}
	for _, m := range a.Missing[:a.Lacks] {
		p.forget(m)
	}
}

// ResolveAll acknowledges all packets from a sequence on, at most as many as an ack can name, and returns that of the
// next packet.
func (p *Tracker) ResolveAll(from uint32) (next uint32) {
	a := wire.Ack{Sequence: p.Log.Next - 1}
	for n := p.Log.Next - from; n > 0 && a.Count < wire.MaxAckWords; n -= min(n, 32) {
		a.Words[a.Count], a.Count = uint32(1<<min(n, 32)-1), a.Count+1
	}
	p.Resolve(&a)
	return p.Log.Next
}

// Acknowledge notes that a packet arrived.
func (p *Tracker) Acknowledge(sent *SentPacket, sequence uint32) {
	if sent.Status == SentAcked {
		return
	}
	p.outcome.Arrived(sent, sequence)
	sent.Status = SentAcked
	p.stats.Acked++
	p.Sizes.arrive(sent.Bytes, p.Snap.Tick, p.Snap.Opts.TickRate)
	if p.Snap.Opts.KeepArrivals {
		p.keepArrival(sent, sequence)
	}
	if !p.AnyAcked || sent.Tick.After(p.Recent) {
		p.AnyAcked, p.Recent, p.RecentSequence = true, sent.Tick, sequence
	}
	if int32(sequence-p.Followed) < 0 { // it was not waited for; its records may be overwritten soon
		p.Trip.Late()
		for i := range sent.Count {
			p.arriveLate(sent, p.Log.Record(sent, i))
		}
	}
}

// Follow advances the tick up to which the fate of every packet is known: it was acknowledged, it
// counts as lost, or something that was sent later was acknowledged.
func (p *Tracker) Follow() {
	t, last := &p.Acks, p.Snap.Slots.Recent.Now // the tick that has ended
	for t.Through != last {
		if to, end := p.silentUntil(last); to != t.Through {
			t.skipTo(to)
			p.Followed, p.unsure, p.gapless = end, ^uint32(0), 0
			continue
		}
		at, ended := p.nextSend(last)
		if !ended {
			return
		}
		end, known := p.knownIn(at, p.Followed)
		if !known {
			return
		}
		p.followTick(at, end)
	}
}

// nextSend returns the first tick after Through in which the peer was, or could have been, sent
// something, and whether that tick has ended.
func (p *Tracker) nextSend(last delta.Tick) (at delta.Tick, ended bool) {
	at = p.Acks.Through + 1
	if p.Interval > snapshot.MaxPeriod { // after a longer interval it is not known what changed in it
		return at, true
	}
	for (at+p.Phase)%p.Interval != 0 && (p.Followed == p.Log.Next || p.Log.At(p.Followed).Tick != at) {
		if at == last {
			return at, false
		}
		at++
	}
	return at, true
}

// knownIn returns the sequence after the packets of a tick, the first of which is given, and whether the
// fate of all of them is known, or something that was sent later arrived. Unless packets often overtake each
// other, those before one that arrived are not waited for either, nor the last few of many.
func (p *Tracker) knownIn(at delta.Tick, from uint32) (end uint32, known bool) {
	reorders := p.Trip.Reorders()
	open := uint32(0) // packets in flight that are waited for
	for end = from; end != p.Log.Next && p.Log.At(end).Tick == at; end++ {
		switch status := p.Log.At(end).Status; {
		case status == SentInFlight:
			open++
		case status == SentAcked && !reorders:
			open = 0
		}
	}
	few := (end - from) / notWaitedFor
	if reorders {
		few = 0
	}
	return end, open <= few || p.AnyAcked && p.Recent.After(at)
}

// notWaitedFor: of the packets of a tick, the last one in so many is not waited for.
const notWaitedFor = 4

// silentUntil skips ticks of which nothing arrived, if they are so long ago that the log of changes
// no longer has them. It returns the last of these ticks and the sequence after its packets. There
// may be many at once, after an outage or after a pause without ticks.
func (p *Tracker) silentUntil(last delta.Tick) (to delta.Tick, end uint32) {
	to, end = p.Acks.Through, p.Followed
	for last-to > snapshot.RecentTicks {
		if end == p.Log.Next {
			return last - snapshot.RecentTicks, end
		}
		next, known := p.knownIn(to+1, end)
		if !known {
			break
		}
		for q := end; q != next; q++ {
			if p.Log.At(q).Status == SentAcked {
				return to, end
			}
		}
		to, end = to+1, next
	}
	return to, end
}

// followTick records the fate of the packets of tick at, up to sequence end.
func (p *Tracker) followTick(at delta.Tick, end uint32) {
	t, before := &p.Acks, p.Acks.Through
	p.noteFate(before, at, end)
	if t.lacksNothing(before) && p.sentExactly(at) && p.allArrived(end) {
		t.skip(at)
		p.Followed = end
		return
	}
	t.pass(at, p.Snap.Tick)
	for ; p.Followed != end; p.Followed++ {
		sent := p.Log.At(p.Followed)
		if sent.Status != SentAcked {
			continue
		}
		for i := range sent.Count {
			r := p.Log.Record(sent, i)
			if r.Kind != baseline.RecordState {
				p.arriveLate(sent, r)
				continue
			}
			b := int(r.Block)
			if mask := t.arrive(b, r.Mask) & p.Dirty[b]; mask != 0 { // it counted as lost too early
				p.clean(b, mask&^t.slots.ChangedAfter(at, b, mask))
			}
		}
	}
	t.settle(before)
}

// noteFate notes whether most packets of tick at arrived, the last of which is before a sequence, and whether any
// left a gap. There are none from the ticks since the one before.
func (p *Tracker) noteFate(before, at delta.Tick, end uint32) {
	arrived, gap := 0, !p.Log.wroteBefore(p.Followed)
	for q := p.Followed; q != end; q++ {
		sent := p.Log.At(q)
		gap = gap || sent.leavesGap()
		switch {
		case sent.Count == 0:
		case sent.Status == SentAcked:
			arrived++
		default:
			arrived--
		}
	}
	for t := before + 1; t-1 != at; t++ {
		bit := uint32(1) << (t % snapshot.RecentTicks)
		if p.unsure, p.gapless = p.unsure&^bit, p.gapless|bit; gap {
			p.gapless &^= bit
		}
	}
	if arrived <= 0 && end != p.Followed {
		p.unsure |= 1 << (at % snapshot.RecentTicks)
	}
}

// allArrived reports whether all unresolved packets before a sequence are shared ones of what changed, and were
// acknowledged.
func (p *Tracker) allArrived(end uint32) bool {
	for q := p.Followed; q != end; q++ {
		if sent := p.Log.At(q); sent.Count > 0 && (sent.Status != SentAcked || sent.shared == nil || sent.Apart) {
			return false
		}
	}
	return true
}

// arriveLate notes that a record of a packet arrived, possibly long ago. It covers exactly what the packet carried.
func (p *Tracker) arriveLate(sent *SentPacket, r baseline.Record) {
	b := int(r.Block)
	switch r.Kind {
	case baseline.RecordState:
		p.holdAt(b, r.Mask, sent.Tick)
	case baseline.RecordDespawn:
		// Where the history has not ended, a newer state was acknowledged. Slots that churn in this
		// tick are still handled as before it, and this despawn may be of a much earlier entity.
		mask := p.Acks.counts(b, r.Mask&p.Acks.Ended[b], sent.Tick)
		mask &^= p.sight.View.Sees(b, p.Snap.Slots.Alive[b]) | p.Snap.Slots.Churned[b]&^p.unseen(b)
		p.Acks.Shown[b] &^= mask
	case baseline.RecordPart:
		if mask := p.Acks.counts(b, r.Mask, sent.Tick); mask != 0 {
			p.acknowledgePart(b<<6+bits.TrailingZeros64(mask), sent)
		}
	}
}

// holdAt notes that the peer holds slots of a block as of a tick. Those that have not changed since
// are no longer dirty.
func (p *Tracker) holdAt(b int, mask uint64, at delta.Tick) {
	now := p.Acks.arriveLate(b, mask, at, p.Snap.Tick)
	if now &= p.Dirty[b]; now != 0 {
		p.clean(b, now&^p.Snap.Slots.ChangedAfter(p.Acks.Through, b, now))
	}
}

// clean notes that the peer holds the newest state of dirty slots of a block. Parts of it are no longer needed.
func (p *Tracker) clean(b int, mask uint64) {
	p.Dirty[b] &^= mask
	p.Large.drop(b, mask)
}

// Expire counts as lost all packets whose acknowledgement is overdue.
func (p *Tracker) Expire() {
	for q := p.Log.firstInFlight(); q != p.Log.Next; q++ {
		sent := p.Log.At(q)
		if sent.Status != SentInFlight {
			continue
		}
		if !p.overdue(sent) {
			return // later packets are not overdue either
		}
		p.Lose(q)
	}
}

// overdue reports whether a packet in flight now counts as lost: a packet sent well after it was
// acknowledged, or its timeout is over.
func (p *Tracker) overdue(sent *SentPacket) bool {
	return p.AnyAcked && p.Recent.After(sent.Tick) && p.Recent-sent.Tick > p.Trip.Slack() ||
		p.Snap.Tick-sent.Tick > p.Trip.Timeout()
}

// Lose counts a packet as lost: what it carried is dirty again, and is still encoded against what
// was acknowledged before.
func (p *Tracker) Lose(sequence uint32) {
	p.outcome.Lost(sequence)
	sent := p.Log.At(sequence)
	sent.Status = SentLost
	p.stats.Lost++
	p.Sizes.lose(sent.Bytes)
	p.Trip.Lost()
	p.Settled.all = false
	t := &p.Acks
	for i := range sent.Count {
		r := p.Log.Record(sent, i)
		b := int(r.Block)
		mask := t.counts(b, r.Mask, sent.Tick)
		switch r.Kind {
		case baseline.RecordPart:
			if mask != 0 {
				p.losePart(b<<6+bits.TrailingZeros64(mask), sent)
			}
			continue
		case baseline.RecordDespawn:
			mask &= p.Gone(b)
		default: // what changed since then is dirty or in flight already
			mask &^= t.slots.ChangedAfter(sent.Tick, b, mask) | p.Large.In(b)
			mask &= t.Behind(b) | t.slots.Changed[b]
		}
		p.MarkDirty(b, mask)
	}
}

// forget withdraws an acknowledgement: the client reports that it lacks a baseline. Only this slot
// is sent in full, and only if the report is about a state that the client is known to hold.
func (p *Tracker) forget(m wire.MissingBaseline) {
	b, bit := int(m.Slot>>6), uint64(1)<<(m.Slot&63)
	if b >= len(p.Dirty) {
		return
	}
	p.Follow()
	at, ok := p.Acks.Holds(int(m.Slot))
	if !ok {
		return
	}
	now := p.Snap.Tick
	named := now - (now-delta.Tick(m.Low))&delta.MaxAge
	if began, known := p.Snap.Slots.ChangedBy(int(m.Slot), at); known && named.Before(began) {
		return // it has received a newer state since then
	}
	p.stats.MissingBaselines++
	p.Settled.all = false
	since := p.Snap.Tick + 1
	if l := p.Large.Of(int(m.Slot)); l != nil {
		since = l.Tick // the state in flight is a full one
	} else {
		p.MarkDirty(b, bit)
	}
	p.Acks.forget(b, bit, since)
}

// partOf returns the large state that a packet's part belongs to, if that is still being sent.
func (p *Tracker) partOf(slot int, sent *SentPacket) *LargeState {
	if l := p.Large.Of(slot); l != nil && uint32(l.Tick) == sent.of && int(sent.part) < len(l.Parts) {
		return l
	}
	return nil
}

// acknowledgePart notes that a part arrived. With the last one, the client holds the state.
func (p *Tracker) acknowledgePart(slot int, sent *SentPacket) {
	l := p.partOf(slot, sent)
	if l == nil || l.Parts[sent.part] == partAcked {
		return
	}
	l.Parts[sent.part] = partAcked
	if l.Missed--; l.Missed == 0 {
		b, bit := slot>>6, uint64(1)<<(slot&63)
		p.Large.drop(b, bit)
		p.holdAt(b, bit, l.Tick)
		if p.arrivals != nil {
			p.arrivals.Add(b, bit, l.Tick, p.Snap.Tick)
		}
		p.MarkDirty(b, bit&p.Snap.Slots.ChangedAfter(l.Tick, b, bit)) // later changes were not sent
	}
}

// losePart notes that a part has to be sent again.
func (p *Tracker) losePart(slot int, sent *SentPacket) {
	l := p.partOf(slot, sent)
	if l == nil || l.Parts[sent.part] != PartInFlight {
		return
	}
	l.Parts[sent.part] = PartUnsent
	b, bit := slot>>6, uint64(1)<<(slot&63)
	out := bit &^ p.sight.View.Sees(b, bit) // with Keep; the client will never have all parts
	if out&^p.Acks.None[b] != 0 {
		p.Large.drop(b, out) // it goes on showing an older state
		return
	}
	p.MarkDirty(b, bit)
	if out != 0 { // it shows nothing of the entity
		p.NoteChurn(b, out)
		p.noteStructure(b, out)
	}
}

// neverComplete returns those of the slots of a block that go out of view of which the client will never have all
// parts: it lacks parts that are not in flight.
func (p *Tracker) neverComplete(b int, mask uint64) (never uint64) {
	for slot := range bitset.Slots(b, mask&p.Large.In(b)) {
		if l := p.Large.Of(slot); l.Encoded == nil || slices.Contains(l.Parts, PartUnsent) {
			never |= 1 << (slot & 63)
		}
	}
	return never
}

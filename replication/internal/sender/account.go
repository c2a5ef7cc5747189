package sender

import "math/bits"

// This file counts, for every entity that was not sent in a tick, the reason.

// account counts the reasons in the peer's counters.
func (p *Sender) account() {
	seen, withheld, hidden := p.sight.View.Divide(p.snap.Slots.Live)
	dirty, inFlight := seen, 0 // the needs of a resting peer are not examined
	if !p.Rests {
		dirty, inFlight = p.waiting()
	}
	switch {
	case p.acked.Silence.Paused:
		p.stats.Silent += uint64(dirty)
	case !p.acked.MaySendNow() || p.Joining.holds:
		p.stats.NotItsTurn += uint64(dirty)
	default:
		p.stats.OverBudget += uint64(dirty)
	}
	if !p.Rests {
		sent := p.stats.Updates + p.stats.FullStates + p.stats.KeyframeFallbacks - p.counted
		p.counted += sent
		// What was sent is in flight as well. An entity counts once, if it was sent twice in a tick.
		p.stats.InFlight += uint64(inFlight) - min(sent, uint64(inFlight))
	}
	p.stats.NotVisible += uint64(hidden)
	p.stats.Withheld += uint64(withheld)
	p.stats.UpToDate += uint64(seen - dirty - inFlight)
}

// waiting returns the number of visible entities that are dirty, and of those that are not but
// whose newest state is in flight.
func (p *Sender) waiting() (dirty, inFlight int) {
	s, acks := &p.snap.Slots, &p.acked.Acks
	for b := range p.acked.DirtyBlocks.All() {
		dirty += bits.OnesCount64(p.sight.View.Sees(b, s.Alive[b]) & p.acked.DirtyIn(b))
	}
	if p.sight.View.InView == nil && s.Recent.After(acks.Through) != nil && acks.HoldsAll(acks.Through) {
		return dirty, p.states.worker.ChangedSince(acks.Through) - dirty
	}
	return dirty, acks.CountBehind(p.sight.View.InView, p.acked.Dirty)
}

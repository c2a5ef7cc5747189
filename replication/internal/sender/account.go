package sender

import (
	"math/bits"

	"github.com/arche-replicate/arche-replicate/replication/internal/bitset"
)

// account counts why what was not sent was not.
func (p *Sender) account() {
	seen, withheld, hidden := p.Sight.View.Divide(p.Snap.Slots.Live)
	due, inFlight := seen, 0 // while the peer rests nobody looks what it needs
	if !p.Rests {
		due, inFlight = p.waiting()
	}
	switch {
	case p.Acked.Silence.Paused:
		p.Stats.Silent += uint64(due)
	case !p.Acked.ItsTurn():
		p.Stats.Interval += uint64(due)
	default:
		p.Stats.OverBudget += uint64(due)
	}
	if !p.Rests {
		sent := p.Stats.Updates + p.Stats.Wholes + p.Stats.Jumps - p.counted
		p.counted += sent
		p.Stats.InFlight += uint64(inFlight) - sent // the latter is on its way as well
	}
	p.Stats.NotVisible += uint64(hidden)
	p.Stats.Withheld += uint64(withheld)
	p.Stats.UpToDate += uint64(seen - due - inFlight)
}

// waiting returns how many entities that the peer sees are due, and of how many others the newest state is on its way.
func (p *Sender) waiting() (due, inFlight int) {
	s := &p.Snap.Slots
	for w, owed := range p.Acked.Acks.DirtyBlocks {
		for b := range bitset.Slots(w, owed) {
			due += bits.OnesCount64(p.Sight.View.Sees(b, s.Alive[b]) & p.Acked.DirtyIn(b))
		}
	}
	if p.Sight.View.InView == nil && p.Acked.Acks.LacksNothing(p.Acked.Acks.Through) {
		return due, p.Runs.ChangedSince(p.Acked.Acks.Through) - due
	}
	for b, alive := range s.Alive {
		if alive = p.Sight.View.Sees(b, alive); alive == 0 {
			continue
		}
		inFlight += bits.OnesCount64(alive & (p.Acked.Acks.Behind(b) | s.News[b]) &^ p.Acked.Dirty[b])
	}
	return due, inFlight
}

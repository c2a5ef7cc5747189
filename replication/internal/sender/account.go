package sender

import (
	"math/bits"

	"github.com/arche-replicate/arche-replicate/replication/internal/bitset"
)

// account counts why what was not sent was not.
func (p *Sender) account() {
	seen, withheld, hidden := p.sight.View.Divide(p.snap.Slots.Live)
	dirty, inFlight := seen, 0 // while the peer rests nobody looks what it needs
	if !p.Rests {
		dirty, inFlight = p.waiting()
	}
	switch {
	case p.acked.Silence.Paused:
		p.stats.Silent += uint64(dirty)
	case !p.acked.MaySendNow():
		p.stats.NotItsTurn += uint64(dirty)
	default:
		p.stats.OverBudget += uint64(dirty)
	}
	if !p.Rests {
		sent := p.stats.Updates + p.stats.FullStates + p.stats.KeyframeFallbacks - p.counted
		p.counted += sent
		p.stats.InFlight += uint64(inFlight) - sent // the latter is on its way as well
	}
	p.stats.NotVisible += uint64(hidden)
	p.stats.Withheld += uint64(withheld)
	p.stats.UpToDate += uint64(seen - dirty - inFlight)
}

// waiting returns how many entities that the peer sees are due, and of how many others the newest state is on its way.
func (p *Sender) waiting() (dirty, inFlight int) {
	s := &p.snap.Slots
	for w, blocks := range p.acked.Acks.DirtyBlocks {
		for b := range bitset.Slots(w, blocks) {
			dirty += bits.OnesCount64(p.sight.View.Sees(b, s.Alive[b]) & p.acked.DirtyIn(b))
		}
	}
	if p.sight.View.InView == nil && p.acked.Acks.LacksNothing(p.acked.Acks.Through) {
		return dirty, p.Worker.ChangedSince(p.acked.Acks.Through) - dirty
	}
	for b, alive := range s.Alive {
		if alive = p.sight.View.Sees(b, alive); alive == 0 {
			continue
		}
		inFlight += bits.OnesCount64(alive & (p.acked.Acks.Behind(b) | s.Changed[b]) &^ p.acked.Dirty[b])
	}
	return dirty, inFlight
}

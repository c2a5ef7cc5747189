package ackstate

import (
	"math/bits"

	"github.com/arche-replicate/arche-replicate/delta"
	"github.com/arche-replicate/arche-replicate/replication/internal/bitset"
	"github.com/arche-replicate/arche-replicate/replication/internal/snapshot"
	"github.com/arche-replicate/arche-replicate/replication/internal/wire"
)

// Which slots are dirty for a peer, which means that it is to be sent them: they changed, came into
// its view or left it, or a packet with them was lost.

// MarkDirty makes slots of a block dirty.
func (p *Tracker) MarkDirty(b int, mask uint64) {
	if mask != 0 {
		p.Dirty[b] |= mask
		p.DirtyBlocks.Add(b)
	}
}

// DirtyIn returns the dirty slots of a block. It clears the block's mark if there are none.
func (p *Tracker) DirtyIn(b int) uint64 {
	dirty := p.Dirty[b]
	if dirty == 0 {
		p.DirtyBlocks.Remove(b)
	}
	return dirty
}

// Grow makes room for new slots, which are all dirty.
func (p *Tracker) Grow() {
	s := &p.Snap.Slots
	old := len(p.Dirty)
	if len(s.Alive) == old {
		return
	}
	first := p.Snap.Tick
	if old == 0 {
		first = p.Acks.Through + 1 // messages may have waited since the session began
	}
	joining := old == 0 && p.Structure != nil && s.Live > manyChanges
	if joining {
		p.Structure.joining = true
	}
	p.Dirty, p.DirtyBlocks = p.Dirty.Grown(s.Len()), p.DirtyBlocks.Grown(len(s.Alive))
	p.Acks.grow(s.Len(), p.Snap.Tick)
	for b, alive := range s.Alive[old:] {
		p.MarkDirty(old+b, alive)
		if !joining {
			p.noteStructureSince(old+b, alive, first)
		}
	}
}

// MarkChanged makes dirty what the peer sees and what changed in this tick.
func (p *Tracker) MarkChanged() {
	s := &p.Snap.Slots
	for b := range s.ChangedBlocks.All() {
		p.MarkDirty(b, p.sight.View.Sees(b, s.Changed[b]))
	}
}

// MarkPeriod makes dirty what changed in the send interval, for a peer that sees everything.
func (p *Tracker) MarkPeriod() {
	for b := range p.Period.Blocks.All() {
		p.MarkDirty(b, p.Period.Changed[b]&p.Snap.Slots.Alive[b])
	}
}

// NoteAllChurn ends the history of the slots whose entity came or went in this tick.
func (p *Tracker) NoteAllChurn() {
	s := &p.Snap.Slots
	if p.Structure != nil {
		for b := range s.ChangedBlocks.All() {
			seen := s.Churned[b]&^p.unseen(b) | p.sight.View.Sees(b, s.SetChanged[b])
			p.noteStructure(b, seen) // enter and leave note the others
		}
	}
	for b := range s.ChurnedBlocks.All() {
		word := s.Churned[b] &^ p.unseen(b)
		p.NoteChurn(b, word)
		p.MarkDirty(b, word&p.Acks.Shown[b])
	}
}

// NoteChurn ends the history of slots of a block: they hold another entity than before, or none.
func (p *Tracker) NoteChurn(b int, mask uint64) {
	p.Large.drop(b, mask)
	p.Acks.endHistory(b, mask, p.Snap.Tick)
	if p.arrivals != nil && mask != 0 {
		p.arrivals.End(b, mask, p.Snap.Tick)
	}
}

// Refresh keeps the ticks of slots of a block within reach of serial arithmetic.
func (p *Tracker) Refresh(b int, slots uint64, limit delta.Tick) {
	if b >= len(p.Dirty) {
		return
	}
	p.MarkDirty(b, p.Acks.refresh(b, slots, limit, p.Snap.Tick)) // these are sent in full
}

// Costly returns those of some dirty slots of a block that are sent in full.
func (p *Tracker) Costly(b int, d uint64) uint64 {
	return d & p.sight.View.Sees(b, p.Snap.Slots.Alive[b]) & (p.Acks.Bare(b) | p.Large.In(b))
}

// MaySendNow reports whether the peer may be sent state in this tick.
func (p *Tracker) MaySendNow() bool { return p.InInterval() && !p.Silence.Paused }

// InInterval reports whether this tick belongs to the peer's send interval.
func (p *Tracker) InInterval() bool {
	return p.Interval == 1 || (p.Snap.Tick+p.Phase)%p.Interval == 0
}

// FindPeriod sets Period, and reports whether the peer has been sent state in its send intervals so far.
func (p *Tracker) FindPeriod() (inOrder bool) {
	if p.Period = nil; p.InInterval() {
		p.Period = p.Snap.Slots.Periods.Get(p.Interval)
	}
	return p.Period != nil && p.Silence.Length == 0
}

// SetInterval sets the send interval from the next tick on, so that a send function which calls it does no harm.
func (p *Tracker) SetInterval(n delta.Tick) { p.nextInterval = n }

// TakeInterval makes the interval of SetInterval that of the tick that begins.
func (p *Tracker) TakeInterval() {
	if n := p.nextInterval; n != p.Interval {
		p.Interval = n
		p.Log.alike, p.Log.even, p.exact = 0, 0, 0 // they are about the old one
	}
}

// MayRest reports whether this tick takes no more for the peer than to note changes, since it is
// sent no state. That does not hold while it has new messages, which may depend on what it sees
// now.
func (p *Tracker) MayRest() bool {
	return !p.MaySendNow() && p.sight.View.Limited == (p.sight.View.InView != nil)
}

// Splits reports whether what is dirty but did not change in this send interval, because it was lost before, is
// sent in packets apart. Then these do not keep the others from being shared, now and by the packets that refer
// to them.
func (p *Tracker) Splits() bool {
	return p.sight.View.InView == nil && !p.Classes.Compact && p.Period.Changes >= p.Snap.Opts.LeastApart &&
		len(p.interest.Groups.Blocks) == 0
}

// CanRelay reports whether shared packets may carry what changed in this send interval: everything, or some of it if
// the peer splits. It also reports whether the peer holds everything at the likely baselines, and everything that such
// packets refer to.
func (p *Tracker) CanRelay(splits bool) (relays, holdsAll bool) {
	if p.sight.View.InView != nil || p.Classes.Compact || p.Large.Any() || !p.AnyAcked ||
		!p.usable(p.Likely.Second) {
		return false, false
	}
	gaps, ok := p.Shares(p.Likely)
	holdsAll = ok && len(gaps) == 0 && p.Acks.lacksNothing(p.Likely.Base) && p.Acks.HoldsAll(p.Likely.Second)
	return ok && (splits || holdsAll && !p.anyOlder()), holdsAll
}

// Shares reports whether the peer may be sent shared packets with a pair of baselines where it holds these, and returns
// the gaps in what the slots of such packets refer to, which are valid until the next call.
func (p *Tracker) Shares(of snapshot.BasePair) (gaps Gaps, ok bool) {
	if !p.Snap.Predicts(of) || !p.sentExactly(of.Base) {
		return nil, false
	}
	if p.isGapless(of.Base) {
		return nil, true
	}
	return p.Log.findGaps(of.Base, p.Followed)
}

// fewNew is how many slots of a block LackIn looks at one by one.
const fewNew = 8

// LackIn returns how many slots of a range have changed in the send interval, and of how many of these the peer lacks
// the baselines. It lacks all if the range has one of the gaps that Shares returned for these. Slots whose component
// set has changed since are in no shared packets. They are left out, unless a block has more than fewNew lacking slots:
// then they count, to save time.
func (p *Tracker) LackIn(in wire.SlotRange, of snapshot.BasePair, gaps Gaps) (lacking, all int) {
	s := &p.Snap.Slots
	for b := range p.Period.Blocks.Between(in.From>>6, in.To>>6) {
		wanted := p.Period.Changed[b] & s.Alive[b] &^ s.Churned[b]
		all += bits.OnesCount64(wanted)
		lacks := wanted & (p.LackOf(of, b) | p.Acks.None[b])
		lacking += bits.OnesCount64(lacks)
		if bits.OnesCount64(lacks) > fewNew { // or else it would take long
			continue
		}
		for slot := range bitset.Slots(b, lacks) {
			if s.Info[slot].SetChanged.After(of.Base) {
				lacking--
			}
		}
	}
	if gaps.touch(in) {
		lacking = max(all, 1)
	}
	return lacking, all
}

// anyOlder reports whether anything is dirty that did not change in this send interval, or is gone.
func (p *Tracker) anyOlder() bool {
	if p.Period.Ticks == 1 {
		return p.AnyDirty() // what changed in this tick is not dirty yet
	}
	for b := range p.DirtyBlocks.All() {
		if p.DirtyIn(b)&^(p.Period.Changed[b]&p.Snap.Slots.Alive[b]) != 0 {
			return true
		}
	}
	return false
}

// AnyDirty reports whether anything is dirty.
func (p *Tracker) AnyDirty() bool {
	for b := range p.DirtyBlocks.All() {
		if p.DirtyIn(b) != 0 {
			return true
		}
	}
	return false
}

// Split divides dirty slots of a block into those that the peer is sent a state of, and those that
// it is sent a despawn of.
func (p *Tracker) Split(b int, d uint64) (live, gone uint64) {
	live = p.sight.View.Sees(b, d&p.Snap.Slots.Alive[b])
	if gone = d &^ live; gone != 0 {
		gone &= p.Gone(b)
	}
	return live, gone
}

// Gone returns the slots of a block that the client may show and must not: their entity ended, or
// went out of view without Keep.
func (p *Tracker) Gone(b int) uint64 {
	gone := p.Acks.Shown[b] &^ p.sight.View.Sees(b, p.Snap.Slots.Alive[b])
	if gone != 0 {
		gone &= p.Acks.Ended[b] | ^p.sight.Keeps(b) // otherwise the client shows the entity that the slot still holds
	}
	return gone
}

// unseen returns the slots of a block that the peer does not see and that the client is known not
// to show, or is being sent a despawn of. The peer needs nothing of what happens there.
func (p *Tracker) unseen(b int) uint64 {
	if b >= len(p.sight.View.InView) {
		return 0
	}
	return p.Acks.Ended[b] &^ p.sight.View.InView[b]
}

// Look updates what the peer sees and handles what enters and leaves its view. Afterwards a slot is
// dirty only if the peer sees it, or if it is gone.
func (p *Tracker) Look() {
	v, s := &p.sight.View, &p.Snap.Slots
	if !v.Limited && v.InView == nil {
		return
	}
	before, limited := uint64(0), v.InView != nil // what is in new slots comes into view
	if !limited {
		before = ^before // until now the peer has seen everything, or nothing yet
	}
	for len(v.InView) < len(s.Alive) {
		v.InView = append(v.InView, before)
	}
	v.Next = v.Next.Grown(s.Len())
	v.Find(s, p.Snap.Resources.Any, limited)
	p.interest.Groups.Show(v.Next)
	p.sight.Withhold()
	p.sight.FindSubEntities()
	p.sight.WithholdSubEntities()
	p.sight.Hold()
	seen := 0
	for b, alive := range s.Alive {
		now, was := v.Next[b]&alive, v.InView[b]|v.Lapsed(b)
		if now|was == 0 && !p.DirtyBlocks.Has(b) && !v.Released {
			continue
		}
		v.InView[b] = now
		seen += bits.OnesCount64(now)
		if entered := now &^ was; entered != 0 {
			p.enter(b, entered)
		}
		if v.Released {
			was |= ^p.Acks.Ended[b] // where the history ended, a despawn is dirty already
		}
		if left := was &^ now; left != 0 {
			p.leave(b, left)
		}
		if changed := s.Changed[b] & now; changed != 0 {
			p.MarkDirty(b, changed)
		}
		if p.Dirty[b]&^now != 0 {
			p.Dirty[b] &= now | p.Gone(b)
		}
	}
	v.VisibleCount, v.Released = seen, false
	if !v.Limited {
		v.InView, v.Next = nil, nil
		clear(p.Acks.Returned)
	}
}

// enter handles slots of a block that came into view.
func (p *Tracker) enter(b int, mask uint64) {
	kept := mask &^ (p.Acks.Behind(b) | p.Snap.Slots.Changed[b]) // by the client, while they were out of view
	if p.arrivals != nil && kept != 0 {
		p.arrivals.ComeBack(b, kept, p.Snap.Tick)
	}
	mask &^= kept
	p.MarkDirty(b, mask)
	p.noteStructure(b, mask)
	p.Acks.Returned[b] |= mask &^ p.Acks.None[b]
}

// leave handles slots of a block that went out of view.
func (p *Tracker) leave(b int, mask uint64) {
	behind := uint64(0)
	if p.arrivals != nil {
		behind = p.Dirty[b] | p.Acks.Behind(b) | p.Snap.Slots.Changed[b]
	}
	p.Dirty[b] &^= mask
	mask &= p.Acks.Shown[b]
	kept := mask
	if mask != 0 {
		// With Keep, the client keeps the entity, unless that may have ended or has not arrived
		// completely. Incomplete entities take memory that is bounded, so the client is sent a
		// despawn.
		never := p.neverComplete(b, mask)
		p.Large.drop(b, never)
		mask &= p.Acks.Ended[b] | ^p.sight.Keeps(b) | never&p.Acks.None[b]
	}
	if kept &^= mask; p.arrivals != nil && kept != 0 {
		p.arrivals.Leave(b, kept, behind, p.Snap.Tick)
	}
	if mask != 0 {
		p.MarkDirty(b, mask)
		p.NoteChurn(b, mask)
		p.noteStructure(b, mask)
	}
}

// LargeWaits reports whether a state that is larger than a packet, and in no group, has parts to send.
func (p *Tracker) LargeWaits() bool {
	for slot := range p.Large.bySlot {
		if p.Dirty.Has(slot) && p.Grouped(slot>>6)>>(slot&63)&1 == 0 {
			return true
		}
	}
	return false
}

// Joins reports whether the client does not have everything yet that existed when its session began, and may be sent
// state in this tick.
func (p *Tracker) Joins() bool { return !p.Join.Complete && p.MaySendNow() }

// SeesAll reports whether the peer sees everything.
func (p *Tracker) SeesAll() bool { return p.sight.View.InView == nil && !p.sight.View.Limited }

// FirstStates returns the slots of a block of which the client holds nothing and that it is to be sent: before the
// peer's tick is prepared, as far as that is known by then.
func (p *Tracker) FirstStates(b int) uint64 {
	s := &p.Snap.Slots
	if b >= len(p.Dirty) {
		return s.Alive[b]
	}
	none := p.Acks.None[b] | s.Churned[b]
	return p.sight.View.Sees(b, s.Alive[b]&none&(p.Dirty[b]|s.Changed[b]))
}

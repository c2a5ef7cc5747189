// Package ackstate knows what one client holds and what it lacks. The sender logs each packet and
// its contents here; acks come in from the client, and time-outs count packets as lost. The package
// answers which slots are dirty for the peer, which baselines their updates can use, and what a
// message has to wait for. There is one [Tracker] per peer; sender, message and the face use it.
package ackstate

import (
	"slices"

	"github.com/arche-replicate/arche-replicate/delta"
	"github.com/arche-replicate/arche-replicate/replication/internal/arrival"
	"github.com/arche-replicate/arche-replicate/replication/internal/baseline"
	"github.com/arche-replicate/arche-replicate/replication/internal/bitset"
	"github.com/arche-replicate/arche-replicate/replication/internal/clock"
	"github.com/arche-replicate/arche-replicate/replication/internal/counters"
	"github.com/arche-replicate/arche-replicate/replication/internal/interest"
	"github.com/arche-replicate/arche-replicate/replication/internal/snapshot"
	"github.com/arche-replicate/arche-replicate/replication/internal/wire"
	"github.com/mlange-42/arche/ecs"
)

// Tracker knows what one client holds, and which of the packets sent to it are still unresolved.
type Tracker struct {
	bases
	sight    *interest.Sight
	interest *interest.Shared
	stats    *counters.PeerCounters

	Structure   *Structure // nil: no message waits for the world
	outcome     outcomes
	Dirty       bitset.Set // slots to be sent; all others are up to date or in flight
	DirtyBlocks bitset.Set // blocks that may have such slots
	Large       LargeStates
	Log         SentLog
	Followed    uint32 // sequence of the first packet that may be unresolved

	// Period is what changed in this tick's send interval, nil if that is not known.
	Period *snapshot.Period

	// exact has a bit for each tick up to ended, modulo RecentTicks: the packets of the tick had exactly the
	// states that changed in the send interval up to it.
	exact uint32
	ended delta.Tick

	Trip           clock.RoundTrip
	AnyAcked       bool       // Recent and RecentSequence are valid
	Recent         delta.Tick // newest tick of an acknowledged packet
	RecentSequence uint32     // of an acknowledged packet of that tick
	history        ackHistory
	Sizes          packetSizes
	Silence        Silence
	Settled        Settled
	nextInterval   delta.Tick // the send interval from the next tick on
	Join           Join
	arrivals       *arrival.History // nil: nothing was sent, or nobody asks
}

// Init prepares a tracker. It reports the outcome of each packet to outcome.
func (p *Tracker) Init(snap *snapshot.Snapshot, shared *interest.Shared,
	sight *interest.Sight, stats *counters.PeerCounters, outcome outcomes,
) {
	p.interest, p.sight, p.stats, p.outcome = shared, sight, stats, outcome
	p.bases, p.nextInterval = bases{Snap: snap, Interval: 1}, 1
	p.Classes.Slots = &snap.Slots
}

// Begin starts a session, in which the client holds nothing yet. first is the sequence of the
// session's first packet. waits reports whether messages may have to wait for the world.
func (p *Tracker) Begin(first uint32, compact, waits bool) {
	p.Acks.reset(&p.Snap.Slots, p.Snap.Tick)
	p.Dirty, p.DirtyBlocks, p.Large = nil, nil, LargeStates{}
	p.Log.clear()
	p.Log, p.Followed, p.unsure, p.gapless = NewSentLog(first), first, ^uint32(0), 0
	p.exact = 0
	p.Trip, p.AnyAcked, p.history = clock.RoundTrip{}, false, ackHistory{newest: first - 1}
	p.Join, p.Silence, p.Settled, p.arrivals = Join{}, Silence{answered: first}, Settled{}, nil
	p.Sizes = packetSizes{since: p.Snap.Tick}
	p.Classes.Compact = compact
	p.Structure = nil
	if waits {
		p.Structure = &Structure{}
	}
}

// End frees the memory of a session.
func (p *Tracker) End() {
	p.Acks, p.Dirty, p.DirtyBlocks, p.Large = AckTable{}, nil, nil, LargeStates{}
	p.Log.clear()
	p.Join, p.Structure, p.arrivals = Join{}, nil, nil
}

// Around stores in r what the client holds of a slot around tick t, as far as that is known or likely, if
// arrivals are kept. born is when the slot's entity got it. If the client has acknowledged nothing after
// t, what is in flight counts as arrived: acknowledgements get lost, and a client that shows time t
// usually has a later state.
func (p *Tracker) Around(r *arrival.Around, slot int, born, t delta.Tick) {
	// Stored in place: reading a copy that was stored a moment ago in pieces of another size would stall.
	if *r = (arrival.Around{}); p.arrivals == nil {
		return
	}
	p.arrivals.Advance(p.Snap.Tick)
	if p.arrivals.Around(r, slot, born, t); r.Before && !t.Before(p.Recent) {
		p.Log.expect(r, slot, t)
	}
	if r.Rested = r.From; r.Before && r.After && r.To-r.From > 1 {
		if known, ok := p.arrivals.Packets.At(r.To); ok && known.After(r.From) && known.Before(r.To) {
			r.Rested = known
		}
	}
}

// Certify reports whether the packet of this tick with the given sequence and base tick is settled, and remembers that
// for rewind.
func (p *Tracker) Certify(sequence uint32, base delta.Tick) bool {
	settled := p.Settled.certifies(base)
	if p.Snap.Opts.KeepArrivals {
		p.beginArrivals() // what is in flight may end before it has arrived
		p.arrivals.Packets.Sent(sequence, p.Snap.Tick, base, p.Interval, settled)
	}
	return settled
}

// beginArrivals makes sure that there are arrivals.
func (p *Tracker) beginArrivals() {
	if p.arrivals != nil {
		return
	}
	held := make(bitset.Set, len(p.Acks.None))
	for b, none := range p.Acks.None {
		held[b] = p.Snap.Slots.Alive[b] &^ none
	}
	p.arrivals = arrival.NewHistory(p.Snap.Opts.Window, p.Snap.Tick, held)
}

// keepArrival notes a packet that was acknowledged.
func (p *Tracker) keepArrival(sent *SentPacket, sequence uint32) {
	p.beginArrivals()
	p.arrivals.Packets.Acknowledge(sequence)
	for i := range sent.Count {
		if r := p.Log.Record(sent, i); r.Kind == baseline.RecordState {
			p.arrivals.Add(int(r.Block), r.Mask, sent.Tick, p.Snap.Tick)
		}
	}
}

// Awaited returns the tick of the first packet after tick t whose fate is not known, and false if there
// is none.
func (p *Tracker) Awaited(t delta.Tick) (delta.Tick, bool) {
	for q := p.Log.Oldest; q != p.Log.Next; q++ {
		if sent := p.Log.At(q); sent.Status == SentInFlight && sent.Tick.After(t) {
			return sent.Tick, true
		}
	}
	return 0, false
}

// HeaderForm returns the shortest form of the header of the next packet that the client is sure to
// complete: from any packet that it may have acknowledged since the one that it is known to have. That
// the packet is overtaken by too many others is unlikely, even if twice as many are sent from now on. To a client from
// which nothing has come for a while it is long, so that the client sees that.
func (p *Tracker) HeaderForm() wire.HeaderForm {
	// An idle world sends three packets in that time.
	recent := 7*max(delta.Tick(p.Snap.Opts.TickRate), p.Interval)/2 + p.Trip.Timeout()
	if !p.Join.Complete || !p.AnyAcked || p.Silence.Length > 0 || p.Snap.Tick-p.Recent > recent ||
		p.Log.moreSince(p.Snap.Tick-p.Trip.Slack(), wire.ShortReach/2) {
		return wire.HeaderLong
	}
	return p.Log.form(p.RecentSequence, p.Recent, p.Snap.Tick, p.Interval)
}

// Patience returns after how many ticks without an acknowledgement the peer counts as silent.
func (p *Tracker) Patience() delta.Tick {
	return max(minPatience, p.Trip.Timeout()*3/2, p.Interval*patienceSends)
}

// Grouped returns the slots of a block that the peer is sent with groups.
func (p *Tracker) Grouped(b int) uint64 {
	bound := p.Snap.Slots.InGroups(b)
	for slot := range bitset.Slots(b, bound&p.unseen(b)) {
		seen := func(g *interest.Group) bool { return !p.unseenIn(g, int32(slot)) }
		if !slices.ContainsFunc(p.interest.Groups.BySlot[slot], seen) {
			bound &^= 1 << (slot & 63)
		}
	}
	return bound
}

// unseenIn reports whether the client has seen nothing of a slot since that joined a group, and is only to be sent the
// end of what was there before. Then nothing that it is sent may depend on the group.
func (p *Tracker) unseenIn(g *interest.Group, slot int32) bool {
	return p.unseen(int(slot)>>6)>>(slot&63)&1 != 0 && !p.Acks.Since[slot].After(g.Since(slot))
}

// TravelsWith reports whether the peer is sent a slot together with a group that the slot is bound to: not if it has
// left the group and the peer knows that.
func (p *Tracker) TravelsWith(g *interest.Group, slot int32) bool {
	for _, f := range g.Former {
		if f.Slot == slot {
			return !p.Released(g, f)
		}
	}
	return !p.unseenIn(g, slot)
}

// Released reports whether a former member of a group may be sent apart from the group: the client
// is known to show the group as of a tick without that member. That holds if the client
// acknowledged a state of the slot or of a member from then on, if it holds everything of the
// group, or if it shows nothing of the slot.
func (p *Tracker) Released(g *interest.Group, f interest.FormerMember) bool {
	if int(f.Slot)>>6 >= len(p.Dirty) {
		return true // it was never sent
	}
	if !p.Acks.Shown.Has(int(f.Slot)) || p.unseenIn(g, f.Slot) || p.holdsSince(f.Slot, f.Ended, f.Ended) {
		return true
	}
	settled := !p.LacksAny(f.Slot)
	for _, m := range g.Members {
		if m.Slot < 0 || p.unseenIn(g, m.Slot) {
			continue
		}
		if p.holdsSince(m.Slot, f.Ended, m.Since) {
			return true
		}
		settled = settled && !p.LacksAny(m.Slot)
	}
	for _, o := range g.Former {
		settled = settled && (p.unseenIn(g, o.Slot) || !p.LacksAny(o.Slot))
	}
	return settled
}

// holdsSince reports whether the peer has acknowledged a state of the slot's present entity, of
// tick t or t2, whichever is later, or after it.
func (p *Tracker) holdsSince(slot int32, t, t2 delta.Tick) bool {
	b, bit := int(slot)>>6, uint64(1)<<(slot&63)
	if b >= len(p.Dirty) || p.sight.View.Sees(b, p.Snap.Slots.Alive[b])&bit == 0 || p.Snap.Slots.Churned[b]&bit != 0 {
		return false
	}
	at, ok := p.Acks.Holds(int(slot))
	if ok {
		at, ok = p.Snap.Slots.ChangedBy(int(slot), at)
	}
	return ok && !at.Before(t) && !at.Before(t2)
}

// LacksAny reports whether the client may show a state of a slot other than the present one.
func (p *Tracker) LacksAny(slot int32) bool {
	b, bit := int(slot)>>6, uint64(1)<<(slot&63)
	if b >= len(p.Dirty) {
		return true
	}
	if p.sight.View.Sees(b, p.Snap.Slots.Alive[b])&bit == 0 {
		return p.Acks.Shown[b]&bit != 0
	}
	return p.Lacks(b, bit)
}

// Lacks reports whether the peer is not known to hold the present state of a slot that it sees.
func (p *Tracker) Lacks(b int, bit uint64) bool {
	return (p.Dirty[b]|p.Acks.None[b]|p.Acks.Behind(b))&bit != 0
}

// learnt returns the tick up to which the peer knows what happened to a slot. It returns false if
// the peer has learnt nothing of the slot's present entity.
func (p *Tracker) learnt(slot int) (delta.Tick, bool) {
	b, bit := slot>>6, uint64(1)<<(slot&63)
	now := p.Snap.Tick
	if p.sight.View.Sees(b, p.Snap.Slots.Alive[b])&bit == 0 {
		return now, p.Gone(b)&bit == 0
	}
	at, ok := p.Acks.Holds(slot)
	if ok && !p.Snap.Slots.ChangedAt[slot].After(at) {
		return now, true // it holds the latest state, so nothing newer will be sent
	}
	return at, ok
}

// settled reports whether the peer knows what a slot was at a tick, or is not to be sent it.
func (p *Tracker) settled(slot int, at delta.Tick) bool {
	learnt, ok := p.learnt(slot)
	return ok && !learnt.Before(at)
}

// sees reports whether the peer sees a slot.
func (p *Tracker) sees(slot int) bool { return p.sight.View.Sees(slot>>6, 1<<(slot&63)) != 0 }

// Saw reports whether the peer sees an entity that had a NetID in the tick before, as of the last tick in which
// that was evaluated.
func (p *Tracker) Saw(id wire.NetID) bool {
	return int(id.Slot)>>6 < len(p.Dirty) && p.sees(int(id.Slot))
}

// Views reports whether the peer sees an entity, or saw it before the entity ended in this tick. id is the entity's
// NetID in the tick before. saw is the result of Saw then, or false if the entity had no NetID.
func (p *Tracker) Views(e ecs.Entity, id wire.NetID, saw bool) bool {
	s := &p.Snap.Slots
	if slot, ok := p.Snap.SlotOf(e); ok && s.Alive.Has(slot) && s.Info[slot].Entity == e {
		return p.sees(slot)
	}
	if !saw || s.Info[id.Slot].Generation != id.Generation {
		return false
	}
	b, bit := int(id.Slot>>6), uint64(1)<<(id.Slot&63)
	// Its history ended in this tick, unless the client was sent nothing of it.
	return b < len(p.Dirty) && p.Gone(b)&bit != 0 && p.Acks.endedAt(int(id.Slot), p.Snap.Tick)
}

// narrow removes from a change what the peer has learnt, and returns false if nothing remains.
func (p *Tracker) narrow(c *change) bool {
	learnt, ok := p.learnt(int(c.Slot))
	if !ok || learnt.Before(c.first) {
		return true
	}
	c.first = learnt + 1
	return c.last.After(learnt)
}

// Dependencies appends the slots that a message of tick at has to wait for, in their order. It
// returns false if there are more than limit; -1 means no limit. It drops the changes that the peer
// has learnt from the list. unsent reports whether something of one of the slots is yet to be sent.
func (p *Tracker) Dependencies(
	at delta.Tick, deps []wire.Dependency, limit int,
) (all []wire.Dependency, unsent, ok bool) {
	s := p.Structure
	if s.joining = s.joining && !p.Join.Complete; s.joining && limit >= 0 || len(p.Dirty) < len(p.Snap.Slots.Alive) {
		return deps, true, false // for lack of the world; it may have been sent nothing yet, see join.Plan.Admit
	}
	s.tidy()
	changes, kept := s.Changes, 0
	ok = true
	for i := range changes {
		c := changes[i]
		if !p.narrow(&c) {
			continue
		}
		if limit >= 0 && !c.first.After(at) {
			if len(deps) == limit {
				ok = false
				kept += copy(changes[kept:], changes[i:])
				break
			}
			deps = append(deps, wire.Dependency{Slot: c.Slot, Tick: c.last})
			unsent = unsent || s.holds(&c, at)
		}
		changes[kept] = c
		kept++
	}
	s.Changes, s.sorted = changes[:kept], kept
	return deps, unsent, ok
}

// StillWaits appends to open those of the dependencies that are not settled.
func (p *Tracker) StillWaits(deps, open []wire.Dependency) []wire.Dependency {
	for _, d := range deps {
		if !p.settled(int(d.Slot), d.Tick) {
			open = append(open, d)
		}
	}
	return open
}

// NoteSent notes what the packets of this tick carry, for messages that wait for it.
func (p *Tracker) NoteSent() {
	s, l := p.Structure, &p.Log
	if s == nil || !s.anyUnsent {
		return
	}
	for q := l.Next; q != l.Oldest && l.At(q-1).Tick == p.Snap.Tick; q-- {
		s.noteSent(l, l.At(q-1))
	}
	s.anyUnsent = slices.ContainsFunc(s.unsent, func(word uint64) bool { return word != 0 })
}

// TrimStructure keeps the list of changes from growing while there are no messages.
func (p *Tracker) TrimStructure() {
	s := p.Structure
	clean := p.Snap.Tick%CleanAt == 0
	if n := len(s.Changes); n > 2*s.kept+CleanAt || n > CleanAt && clean {
		p.Dependencies(p.Snap.Tick, nil, -1)
		s.kept = len(s.Changes)
	}
	if n, c := len(s.Changes), cap(s.Changes); clean && c > 16*CleanAt && c > 8*n {
		// A client has received a large world.
		s.Changes = append(make([]change, 0, 2*n), s.Changes...)
	}
}

// noteStructure notes that slots of a block came or went for the peer, or changed their component
// sets.
func (p *Tracker) noteStructure(b int, mask uint64) { p.noteStructureSince(b, mask, p.Snap.Tick) }

// noteStructureSince is noteStructure if messages from a tick on have to wait for it.
func (p *Tracker) noteStructureSince(b int, mask uint64, first delta.Tick) {
	if p.Structure != nil && mask != 0 {
		p.Structure.note(b, mask, first, p.Snap.Tick)
	}
}

// Reference appends the slots of which the packets of a tick had states, in their order. There are none if
// one of these packets did not arrive, or if that was too long ago.
func (p *Tracker) Reference(ref []wire.SlotBlock, at delta.Tick) []wire.SlotBlock {
	if p.Snap.Tick-at >= snapshot.RecentTicks {
		return ref
	}
	if p.isGapless(at) && p.sentExactly(at) {
		return p.Snap.Slots.AppendLive(ref, p.Interval, at)
	}
	first, end, known := p.Log.packetsOf(at, p.Followed)
	switch {
	case !known || first == end || p.Log.anyGap(first, end): // or it is not known yet what arrived
		return ref
	case p.sentExactly(at):
		return p.Snap.Slots.AppendLive(ref, p.Interval, at) // the same
	default:
		return p.Log.appendStates(ref, first, end)
	}
}

// sentExactly reports whether the packets of a recent tick had exactly what changed in the send interval up to it,
// which is still known.
func (p *Tracker) sentExactly(at delta.Tick) bool {
	return p.ended-at < snapshot.RecentTicks && p.exact>>(at%snapshot.RecentTicks)&1 != 0 &&
		p.Snap.Tick-at+p.Interval <= snapshot.RecentTicks
}

// EndPackets ends a tick. shared reports whether all that the peer was sent was shared packets, once whether
// it was sent no slot twice. The log forgets what no packet refers to.
func (p *Tracker) EndPackets(shared, once bool) {
	now, kept := p.Snap.Tick, p.Followed
	if now-p.ended != 1 { // a function of the user's panicked
		p.exact = 0
	}
	p.ended = now
	bit := uint32(1) << (now % snapshot.RecentTicks)
	p.exact &^= bit
	if !p.Classes.Compact {
		if shared || once && p.Period != nil && p.Log.hasAll(p.Period, p.Snap.Slots.Alive, now) {
			p.exact |= bit
		}
		if now-p.Likely.Base < snapshot.RecentTicks {
			kept = p.Log.lastBefore(p.Likely.Base-(baseline.NearBases-2)*p.step(), kept)
		}
	}
	p.Log.trim(kept)
}

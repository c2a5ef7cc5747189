package replication

import (
	"fmt"

	"github.com/arche-replicate/arche-replicate/delta"
	"github.com/arche-replicate/arche-replicate/replication/internal/session"
	"github.com/arche-replicate/arche-replicate/replication/internal/snapshot"
)

// What must hold in every tick of a chaos game, and at its end.

func (a *chaosGame) check(i int, e *chaosEnd) {
	for id, entity := range e.client.Entities() {
		tick, _ := e.client.StateTick(entity)
		if last, ok := e.last[id]; ok && Tick(last) == tick {
			continue
		} else if ok && int32(tick-Tick(last)) < 0 {
			a.fail("end %d: %v back from %d to %d", i, id, last, tick)
		}
		e.last[id] = uint32(tick)
		if got, want := stateOf(faceOf(a.server.schema), e.world, entity), a.truth.at(id, uint32(tick)); got != want {
			a.fail("end %d: %v wrong at tick %d (server %d):\n got %.200s\nwant %.200s", i, id, tick, a.server.Tick(), got, want)
		}
	}
}

// invariants checks the server's tables against each other.
func (a *chaosGame) invariants() {
	if a.now%8 == 0 {
		a.checkStats()
		raw := a.server.snap.RawBits
		for slot, width := range a.server.snap.Slots.Widths {
			if raw -= int(width); width != 0 && !a.server.snap.Slots.Alive.Has(slot) {
				a.fail("empty slot %d has a width of %d bits", slot, width)
			}
		}
		if raw != 0 {
			a.fail("the widths of all slots are %d bits less than counted", raw)
		}
	}
	for i, e := range a.ends {
		p := e.peer
		if p.conn.State != session.Connected {
			continue
		}
		if a.now%8 == 0 || a.cfg.wild != nil {
			if msg := heldBy(a.server, p, e.client); msg != "" {
				a.fail("end %d: %s", i, msg)
			}
			if msg := forgottenBy(a.server, p); msg != "" && !a.unfinished {
				a.fail("end %d: %s", i, msg)
			}
		}
		t := &p.acked.Acks
		for b := range p.acked.Dirty {
			if p.acked.Dirty[b] != 0 && !p.acked.DirtyBlocks.Has(b) {
				a.fail("end %d block %d: dirty, but not in DirtyBlocks", i, b)
			}
			// A tick that panicked may not have come to the slots that were spawned in it.
			if !a.unfinished && p.sight.View.InView == nil && t.None[b]&a.server.snap.Slots.Alive[b] != 0 && !t.Unknown.Has(b) {
				a.fail("end %d block %d: nothing is held of %x, which Unknown lacks", i, b, t.None[b]&a.server.snap.Slots.Alive[b])
			}
			if t.Ended[b]&^t.None[b] != 0 {
				a.fail("end %d block %d: something of what ended is held: %x", i, b, t.Ended[b]&^t.None[b])
			}
		}
	}
}

// checkStats: every entry has a baseline of some age or none, and every sent entity is counted as
// an entry.
func (a *chaosGame) checkStats() {
	stats := a.server.Stats()
	var ages, sent uint64
	for _, n := range stats.BaselineAges {
		ages += n
	}
	for _, e := range a.ends {
		p := e.peer.Stats()
		sent += p.Updates + p.FullStates + p.KeyframeFallbacks
	}
	if ages != stats.Entries || a.panicked == 0 && sent > stats.Entries {
		a.fail("%d entities were sent, %d entries, %d of them by age", sent, stats.Entries, ages)
	}
}

func (a *chaosGame) equal() {
	if diff := a.differs(); diff != "" {
		a.fail("%s", diff)
	}
}

// differs returns what a client does not have as the server does.
func (a *chaosGame) differs() string {
	for i, e := range a.ends {
		if diff := e.equalTo(a.server, a.truth); diff != "" {
			return fmt.Sprintf("end %d does not converge: %.600s\n%+v\n%+v", i, diff, e.peer.Stats(), e.client.Stats())
		}
	}
	return ""
}

func (a *chaosGame) logOf(slot int) (ticks []delta.Tick) {
	s := &a.server.snap.Slots
	for at := a.server.snap.Tick; a.server.snap.Tick-at < snapshot.RecentTicks; at-- {
		if s.Log[at%snapshot.RecentTicks].Has(slot) {
			ticks = append(ticks, at)
		}
	}
	return
}

func (a *chaosGame) stuck(p *Peer) (out string) {
	t := &p.acked.Acks
	for b := range p.acked.Dirty {
		if t.Behind(b) != 0 || p.acked.Dirty[b] != 0 {
			out += fmt.Sprintf(" [block %d behind %x dirty %x none %x large %x shown %x alive %x inflight %d]", b, t.Behind(b), p.acked.Dirty[b], t.None[b], p.acked.Large.In(b), t.Shown[b], a.server.snap.Slots.Alive[b], p.acked.Log.Next-p.acked.Log.Oldest)
		}
	}
	return
}

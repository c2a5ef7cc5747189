package replication

import (
	"fmt"
	"slices"

	"github.com/arche-replicate/arche-replicate/delta"
	"github.com/arche-replicate/arche-replicate/replication/internal/bitset"
	"github.com/arche-replicate/arche-replicate/replication/internal/receive"
	"github.com/arche-replicate/arche-replicate/replication/internal/session"
	"github.com/arche-replicate/arche-replicate/replication/internal/wire"
)

// A settledOracle remembers what the server had and what every peer saw, in every tick, and compares it
// with what clients hold to be settled.
type settledOracle struct {
	server *Server
	slots  [][]oracleVersion
	seen   map[*Peer]map[uint32]oracleView
	ends   map[*Client]*oracleEnd

	claims, states int // that were compared
}

// oracleVersion is what a slot was from a tick on.
type oracleVersion struct {
	tick       uint32
	alive      bool
	generation uint16
	set        wire.ComponentSet
	rows       [][]uint32 // by component; nil: the slot has none
}

type oracleView struct {
	slots bitset.Set
	keep  bool
}

// oracleEnd is what is known of a client.
type oracleEnd struct {
	known bool
	tick  delta.Tick
	id    uint64 // of the session
}

func newSettledOracle(s *Server) *settledOracle {
	return &settledOracle{server: s, seen: map[*Peer]map[uint32]oracleView{}, ends: map[*Client]*oracleEnd{}}
}

// record is called after every Replicate.
func (o *settledOracle) record() {
	s, now := &o.server.snap.Slots, o.server.Tick()
	for len(o.slots) < s.Len() {
		o.slots = append(o.slots, nil)
	}
	for slot := range o.slots {
		v := oracleVersion{tick: uint32(now), alive: s.Alive.Has(slot)}
		if v.alive {
			info := &s.Info[slot]
			v.generation, v.set = info.Generation, info.Set
			v.rows = make([][]uint32, len(o.server.schema.Components))
			for k := range info.Set.All() {
				v.rows[k] = o.server.snap.Histories[k].Row(slot)
			}
		}
		list := o.slots[slot]
		if n := len(list); n > 0 && list[n-1].same(&v) {
			continue
		}
		for k := range v.rows {
			v.rows[k] = slices.Clone(v.rows[k])
		}
		o.slots[slot] = append(list, v)
	}
	for _, p := range o.server.peers {
		if p.conn.State != session.Connected {
			continue
		}
		v := oracleView{keep: p.sight.View.Keep || p.sight.View.Released}
		for b, alive := range s.Alive {
			v.slots = append(v.slots, p.sight.View.Sees(b, alive))
		}
		if o.seen[p] == nil {
			o.seen[p] = map[uint32]oracleView{}
		}
		o.seen[p][uint32(now)] = v
	}
}

func (v *oracleVersion) same(w *oracleVersion) bool {
	return v.alive == w.alive && v.generation == w.generation && v.set == w.set &&
		slices.EqualFunc(v.rows, w.rows, slices.Equal)
}

// at returns what a slot was as of a tick.
func (o *settledOracle) at(slot int, tick uint32) *oracleVersion {
	if slot >= len(o.slots) {
		return &oracleVersion{}
	}
	for i := len(o.slots[slot]) - 1; i >= 0; i-- {
		if v := &o.slots[slot][i]; int32(tick-v.tick) >= 0 {
			return v
		}
	}
	return &oracleVersion{}
}

// received is called after every packet that a client received. It returns what is wrong, or "".
func (o *settledOracle) received(p *Peer, c *Client) string {
	if !c.session.Open() || c.session.ID != p.conn.Session.ID {
		return "" // of an earlier session, whose views are forgotten
	}
	e, s := o.ends[c], &c.recv.Settled
	if e == nil || e.id != c.session.ID {
		e = &oracleEnd{id: c.session.ID}
		o.ends[c] = e
	}
	if e.known && (!s.Known || e.tick.After(s.Tick)) {
		return fmt.Sprintf("the settled tick went back from %d to %d (%v)", e.tick, s.Tick, s.Known)
	}
	if msg := o.since(p, c); msg != "" {
		return msg
	}
	if !s.Known || e.known && e.tick == s.Tick {
		return ""
	}
	e.known, e.tick = true, s.Tick
	o.claims++
	return o.holds(p, c, s.Tick)
}

// holds compares everything that a client holds as of a settled tick.
func (o *settledOracle) holds(p *Peer, c *Client, at delta.Tick) string {
	seen, ok := o.seen[p][uint32(at)]
	if !ok {
		return fmt.Sprintf("tick %d is settled, in which the peer was sent nothing", at)
	}
	for slot := range o.slots {
		m := c.recv.Replicas.At(uint32(slot))
		var state *receive.HeldState
		empty := m == nil || !m.Any
		if !empty {
			state = m.Held.Find(at)
			empty = !m.Newest.After(at) && m.Empty
		}
		if slot < 64*len(seen.slots) && seen.slots.Has(slot) {
			if empty {
				return fmt.Sprintf("settled at %d: slot %d is empty", at, slot)
			}
			if msg := o.differs(slot, at, state); msg != "" {
				return fmt.Sprintf("settled at %d: %s", at, msg)
			}
			o.states++
		} else if !empty && !seen.keep && !m.Newest.After(at) {
			return fmt.Sprintf("settled at %d: slot %d is out of view, and still here", at, slot)
		}
	}
	return ""
}

// since compares the states that are known to have rested before a newer one.
func (o *settledOracle) since(p *Peer, c *Client) string {
	for _, slot := range c.recv.Dirty {
		m := c.recv.Replicas.At(slot)
		for at := m.Newest; ; {
			before, next := m.Held.Around(at - 1)
			if next == nil || before == nil {
				break
			}
			at = before.Tick
			rested, ok := next.Rested()
			if !ok {
				continue
			}
			if rested.Before(before.Tick) {
				return fmt.Sprintf("slot %d: the state of tick %d rested up to %d", slot, before.Tick, rested)
			}
			seen, ok := o.seen[p][uint32(rested)]
			if !ok {
				return fmt.Sprintf("slot %d rested up to tick %d, in which the peer was sent nothing", slot, rested)
			}
			if int(slot) >= 64*len(seen.slots) || !seen.slots.Has(int(slot)) {
				if !seen.keep {
					return fmt.Sprintf("slot %d rested up to tick %d, in which it was out of view", slot, rested)
				}
			} else {
				if msg := o.differs(int(slot), rested, before); msg != "" {
					return fmt.Sprintf("rested until %d, tick %d: %s", rested, next.Tick, msg)
				}
				o.states++
			}
		}
	}
	return ""
}

// differs compares a held state with what the server had at a tick.
func (o *settledOracle) differs(slot int, at delta.Tick, state *receive.HeldState) string {
	want := o.at(slot, uint32(at))
	switch {
	case state == nil:
		return fmt.Sprintf("slot %d: no state is held", slot)
	case !want.alive || state.Generation != want.generation || state.Layout.Set != want.set:
		return fmt.Sprintf("slot %d: as of %d held is the entity of tick %d", slot, at, state.Tick)
	}
	for k, row := range want.rows {
		if row != nil && !slices.Equal(row, state.Row(k, len(row))) {
			return fmt.Sprintf("slot %d: as of %d the state of tick %d is held, which differs in %s", slot, at, state.Tick,
				o.server.schema.Components[k].Name)
		}
	}
	return ""
}

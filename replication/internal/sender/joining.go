package sender

import (
	"math/bits"

	"github.com/arche-replicate/arche-replicate/replication/internal/ackstate"
	"github.com/arche-replicate/arche-replicate/replication/internal/bitset"
	"github.com/arche-replicate/arche-replicate/replication/internal/join"
)

// A joining sends a peer that joins what the plan of the tick has for it, see package join.
type joining struct {
	*peer
	packet *packetWriter
	budget *budget
	groups *groupSender

	Begun, AtOnce bool // the peer has had a tick; it is sent everything in its first one
	place         join.Place
	joins         bool // it does not have everything yet
	holds         bool // some of what it needs waits for a later tick
}

// fewForeign is the share of a shared packet that a peer may have no need of, a divisor.
const fewForeign = 4

func (j *joining) begin() { j.Begun, j.joins, j.holds, j.place = false, false, false, join.Place{} }

// enter adds the peer to the plan of a tick, or returns false if it has to wait for its first one.
func (j *joining) enter(plan *join.Plan) bool {
	if !j.Begun {
		if !j.AtOnce && !plan.Admit() {
			return false
		}
		j.Begun, j.holds = true, !j.AtOnce
	}
	j.acked.TakeInterval()
	if j.joins = j.acked.Joins() && !j.AtOnce; j.joins {
		plan.Add(j.acked, &j.place, j.budget.Rate == 0, j.holds)
	}
	return true
}

// send sends the shared packets of the tick that the peer needs, if it is sent all, and finds what waits for later.
func (j *joining) send(c *worker, all bool) {
	j.holds = false
	if !j.joins {
		return
	}
	full := all && !j.narrow && j.budget.Rate == 0 && j.packet.Compact == nil && !j.snap.Opts.NoSharedPackets
	if full && c.joins.Shares && j.acked.SeesAll() {
		c.full.Fill(&c.Cache, c.joins.Shared)
		j.share(c)
	}
	if j.holds = c.joins.Partial && (all || j.budget.affordable() > c.joins.Bits); j.holds {
		c.waits = c.waits.Grown(len(j.acked.Dirty) << 6)
		for b, dirty := range j.acked.Dirty {
			if c.waits[b] = 0; !c.joins.May(b) {
				c.waits[b] = dirty & j.acked.Acks.None[b] & j.snap.Slots.Alive[b]
			}
		}
	}
}

// share sends the shared packets that the peer needs most of.
func (j *joining) share(c *worker) {
	packets, first := c.full.Packets, 0
	for i := range packets {
		open := j.acked.Log.Next - j.acked.Log.Oldest + uint32(i-first)
		if open >= ackstate.MaxInFlight || !j.needsMost(c, i) {
			j.packet.relay(packets[first:i], c.full.Records, &j.stats.FullStates)
			first = i + 1
		}
	}
	j.packet.relay(packets[first:], c.full.Records, &j.stats.FullStates)
}

// needsMost reports whether the peer needs most of a shared packet.
func (j *joining) needsMost(c *worker, i int) bool {
	first, end := c.full.Packets[i].Records()
	needed := 0
	for _, record := range c.full.Records.List[first:end] {
		r := record.Record()
		if j.acked.Large.In(int(r.Block))&r.Mask != 0 {
			return false
		}
		needed += bits.OnesCount64(j.acked.Dirty[r.Block] & j.acked.Acks.None[r.Block] & r.Mask)
	}
	return fewForeign*(c.full.Packets[i].Entries-needed) <= c.full.Packets[i].Entries
}

// ready returns those of some slots that don't wait for a later tick.
func (j *joining) ready(c *worker, of bitset.Set) bitset.Set {
	if !j.holds {
		return of
	}
	c.ready = append(c.ready[:0], of...)
	for b, waits := range c.waits[:len(of)] {
		c.ready[b] &^= waits
	}
	j.groups.complete(c.ready)
	return c.ready
}

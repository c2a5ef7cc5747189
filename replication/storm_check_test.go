package replication

import (
	"fmt"

	"github.com/arche-replicate/arche-replicate/delta"
	"github.com/mlange-42/arche/ecs"
)

// What must hold in every tick of a storm, and at its end.

func (a *storm) check(i int, e *stormEnd) {
	e.client.Each(func(id NetID, entity ecs.Entity, tick uint32) {
		if last, ok := e.last[id]; ok && last == tick {
			return
		} else if ok && int32(tick-last) < 0 {
			a.fail("end %d: %v back from %d to %d", i, id, last, tick)
		}
		e.last[id] = tick
		if got, want := stateOf(a.server.schema, e.world, entity), a.truth.at(id, tick); got != want {
			a.fail("end %d: %v torn at tick %d (server %d):\n got %.200s\nwant %.200s", i, id, tick, a.server.Tick(), got, want)
		}
	})
}

// invariants are of the server's tables.
func (a *storm) invariants() {
	s := &a.server.slots
	now := a.server.tick
	for i, e := range a.ends {
		p := e.peer
		if !p.connected {
			continue
		}
		t := &p.acks
		for k := range t.chunks {
			ch := &t.chunks[k]
			for j := range ch.blocks {
				b := k*chunkBlocks + j
				if b >= len(p.acks.inStep) {
					continue
				}
				blk, rare := &ch.blocks[j], &ch.rare[j]
				if (blk.flight != 0) != t.flying.has(b) {
					a.fail("end %d block %d: flight %x, flying %v", i, b, blk.flight, t.flying.has(b))
				}
				in := p.acks.inStep[b]
				if b < len(s.alive) && in&^s.alive[b] != 0 {
					a.fail("end %d block %d: in step but dead %x", i, b, in&^s.alive[b])
				}
				if in&(blk.acked|blk.rest|blk.flight|blk.lost|rare.again|rare.floor|rare.large) != 0 {
					a.fail("end %d block %d: in step with bits: %x acked %x rest %x flight %x lost %x again %x floor %x large %x", i, b, in, blk.acked, blk.rest, blk.flight, blk.lost, rare.again, rare.floor, rare.large)
				}
				if in&^blk.shown != 0 {
					a.fail("end %d block %d: in step, not shown", i, b)
				}
				if b < len(p.due) && in&p.due[b] != 0 {
					a.fail("end %d block %d: in step and due", i, b)
				}
				if b < len(s.alive) && s.alive[b]&^in != 0 && !t.strays.has(b) {
					a.fail("end %d block %d: out of step, not among the strays: %x", i, b, s.alive[b]&^in)
				}
				if b < len(p.due) && p.due[b] != 0 && !t.owed.has(b) {
					a.fail("end %d block %d: due, but not owed", i, b)
				}
				if in != 0 && !p.stepped {
					a.fail("end %d block %d: in step, not stepped", i, b)
				}
				if (rare.again|rare.floor|rare.large)&^blk.rare != 0 {
					a.fail("end %d block %d: rare lacks", i, b)
				}
				if blk.rest&^blk.acked != 0 {
					a.fail("end %d block %d: rest without acked", i, b)
				}
				var rows uint64
				for r := range ch.rows {
					w := ch.rows[r][j]
					rows |= w
					at := now - (now-delta.Tick(r))&(t.ticks-1)
					if delta.Tick(r) >= t.ticks && w != 0 {
						a.fail("row beyond")
					}
					if w != 0 && t.marks[k].rows>>r&1 == 0 {
						a.fail("end %d block %d: row of tick %d, not marked", i, b, at)
					}
					if w != 0 && at.After(t.marks[k].row) {
						a.fail("end %d block %d: row of tick %d after mark %d", i, b, at, t.marks[k].row)
					}
				}
				if rows&in != 0 {
					a.fail("end %d block %d: rows in step", i, b)
				}
				if b < len(s.alive) && blk.acked&^blk.rest&^rows != 0 {
					a.fail("end %d block %d: acked, not rest, no rows: %x", i, b, blk.acked&^blk.rest&^rows)
				}
			}
		}
	}
}

func (a *storm) equal() {
	for i, e := range a.ends {
		if diff := e.equalTo(a.server, a.truth); diff != "" {
			a.fail("end %d does not converge: %.600s\n%+v\n%+v", i, diff, e.peer.Stats(), e.client.Stats())
		}
	}
}

func (a *storm) logOf(slot int) (ticks []delta.Tick) {
	s := &a.server.slots
	for at := a.server.tick; a.server.tick-at < 32; at-- {
		if s.log[slot>>6/chunkBlocks][at%recentTicks][slot>>6%chunkBlocks]>>(slot&63)&1 != 0 {
			ticks = append(ticks, at)
		}
	}
	return
}

func (a *storm) stuck(p *Peer) (out string) {
	for b := range p.due {
		blk, rare := p.acks.block(b), p.acks.rare(b)
		if blk.flight != 0 || p.due[b] != 0 {
			out += fmt.Sprintf(" [block %d flight %x due %x lost %x acked %x rest %x again %x floor %x large %x shown %x alive %x inflight %d]", b, blk.flight, p.due[b], blk.lost, blk.acked, blk.rest, rare.again, rare.floor, rare.large, blk.shown, a.server.slots.alive[b], p.log.next-p.log.oldest)
		}
	}
	return
}

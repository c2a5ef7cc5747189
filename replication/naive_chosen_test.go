package replication

import (
	"slices"

	"github.com/arche-replicate/arche-replicate/bitbuf"
)

// Clients of the naive server with a view, a budget or a send interval are served by brute force,
// as in a first implementation: it tests the distance of every entity to every client, sorts all
// waiting entities by waiting time, and writes the first until the bytes are spent.

// ackedChosenOrder is the order of the exp-Golomb codes of gaps, in place of ackedGapOrder: the
// gaps between chosen entities are larger.
const ackedChosenOrder = 4

// An ackedPlan holds the settings of a client of the naive server; the zero value limits nothing.
type ackedPlan struct {
	interval int     // ticks between sends; 0 and 1: every tick
	budget   int     // bytes per second; 0: no limit
	radius   float32 // radius of the view; 0: everything
	x, y     float32 // viewpoint

	phase  int
	tokens int // bytes that may be sent, times scaleRate
	mean   int // recent bits per entry
	queue  []ackedCandidate
}

type ackedCandidate struct {
	id, waited uint32
}

func (a *ackedPlan) plain() bool { return a.interval <= 1 && a.budget == 0 && a.radius == 0 }

// sees tests the distance of an entity.
func (a *ackedPlan) sees(e *naiveEntity) bool {
	dx, dy := e.position.X-a.x, e.position.Y-a.y
	return dx*dx+dy*dy <= a.radius*a.radius
}

// replicateChosen is replicate for a client with an ackedPlan.
func (p *ackedPeer) replicateChosen(s *ackedServer) {
	a := &p.plan
	if a.budget > 0 {
		a.tokens = min(a.tokens+a.budget, a.budget*max(scaleRate/8, a.interval)+naiveMTU*scaleRate)
	}
	if a.interval > 1 && (int(s.tick)+a.phase)%a.interval != 0 {
		return
	}
	if a.budget > 0 && a.tokens < min(naiveMTU, a.budget/15)*scaleRate {
		return
	}
	a.queue = a.queue[:0]
	for id := range s.now {
		if a.radius > 0 && !a.sees(&s.read[id]) {
			continue
		}
		if s.now[id] == p.known[id] || p.tried[id] >= s.changed[id] && s.tick-p.tried[id] < ackedPatience {
			continue
		}
		a.queue = append(a.queue, ackedCandidate{uint32(id), s.tick - max(p.tried[id], p.since[id])})
	}
	if a.budget > 0 {
		p.choose()
	}
	p.writeQueue(s)
}

// choose keeps in the queue the entities that have waited longest, as many as the budget allows, in
// the order of ids.
func (p *ackedPeer) choose() {
	a := &p.plan
	slices.SortFunc(a.queue, func(x, y ackedCandidate) int { return int(y.waited) - int(x.waited) })
	bits := a.tokens / scaleRate * 8
	a.queue = a.queue[:min(len(a.queue), bits/max(a.mean, 1)+1)]
	slices.SortFunc(a.queue, func(x, y ackedCandidate) int { return int(x.id) - int(y.id) })
}

// writeQueue sends the entities in the queue.
func (p *ackedPeer) writeQueue(s *ackedServer) {
	a := &p.plan
	w := bitbuf.NewWriter(p.buf[ackedHeader:])
	var f *ackedFlight
	last, sent := -1, 0
	end := func() {
		sent += ackedHeader + len(w.Bytes())
		p.flush(s, &w, f)
	}
	for _, c := range a.queue {
		if f != nil && w.Remaining() < ackedEntryBits {
			end()
			w.Reset(p.buf[ackedHeader:])
			f, last = nil, -1
		}
		if f == nil {
			f = s.flight()
		}
		e, k := &s.now[c.id], &p.known[c.id]
		w.WriteExpGolomb(uint64(int(c.id)-last-1), ackedChosenOrder)
		writeDifference(&w, e, k, s.tick-p.since[c.id], p.since[c.id])
		f.records = append(f.records, ackedRecord{c.id, *e})
		p.tried[c.id], last = s.tick, int(c.id)
	}
	if f != nil {
		end()
		a.mean += (8*sent/len(a.queue) - a.mean) / 8
	}
	a.tokens -= sent * scaleRate
}

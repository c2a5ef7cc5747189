package predict

import (
	"fmt"
	"math"
	"slices"
	"time"

	"github.com/arche-replicate/arche-replicate/replication"
	"github.com/arche-replicate/arche-replicate/replication/internal/archeutil"
	"github.com/arche-replicate/arche-replicate/replication/internal/blend"
	"github.com/arche-replicate/arche-replicate/replication/internal/receive"
	"github.com/mlange-42/arche/ecs"
)

// What is predicted is ahead of what is interpolated. An entity that changes sides slides: its time goes faster or more
// slowly until it has arrived, on the one path that held states and simulated ticks make. Its place is never blended.

// Predict makes the client predict a replica that its player does not control, such as a ball or a ship nearby, for as
// long as the entity lives. If the input type is also a component of the schema, and the server's entities have it, a
// ship continues with the newest input that is known of it. The entity's time goes faster until it has arrived at that
// of predictions, which takes the given time, and at least twice as long as it has to catch up. After a Release,
// Predict is also for what the player controls.
//
// Panics if the entity is not a replica of the client's, and unless the time is 0 to 10 seconds.
func (p *Predictor) Predict(e ecs.Entity, blend time.Duration) { p.ask("Predict", e, blend, true) }

// Release ends the prediction of an entity, also of one that the player controls: its time goes more slowly until it
// has arrived at that of the states that are shown, which takes the given time, and at least twice as long as that is
// behind. 0 ends it at once.
//
// Panics if the entity is not a replica of the client's, and unless the time is 0 to 10 seconds.
func (p *Predictor) Release(e ecs.Entity, blend time.Duration) { p.ask("Release", e, blend, false) }

func (p *Predictor) ask(name string, e ecs.Entity, blend time.Duration, predict bool) {
	p.mustExist()
	if blend < 0 || blend > 10*time.Second {
		panic(fmt.Sprintf("predict: Predictor.%s with a blend of %v: use 0 to 10s", name, blend))
	}
	if _, ok := p.client.NetID(e); !ok {
		panic("predict: Predictor." + name + " of an entity that is not a replica of this client's: " +
			"use one that it has got from the server")
	}
	l := &p.sim.slides
	l.asked = slices.DeleteFunc(l.asked, func(r request) bool { return r.entity == e })
	l.asked = append(l.asked, request{e, blend, predict})
}

// slides are the entities that change sides.
type slides struct {
	sim   *simulation
	asked []request
	left  map[ecs.Entity]struct{} // what would be predicted, but Release was called for it
}

// A request is a call of Predict or Release, until the next frame.
type request struct {
	entity  ecs.Entity
	blend   time.Duration
	predict bool
}

// A slide is how far the time that an entity is drawn at is behind that of predictions.
type slide struct {
	lag       float64 // ticks
	rate      float64 // by which it changes, in ticks a tick
	releasing bool
	done      bool // it has arrived
}

// quickest is by how much the time of an entity may pass faster or more slowly than time.
const quickest = 0.45

// answer does what was asked for.
func (l *slides) answer(to replication.Tick, at replication.Time, from *earliest) {
	s, asked := l.sim, l.asked
	l.asked = l.asked[:0]
	for _, a := range asked {
		if !archeutil.Alive(s.world, a.entity) {
			continue
		}
		i, predicted := s.rowOf(a.entity)
		switch {
		case a.predict:
			delete(l.left, a.entity)
			began := !predicted
			if began {
				if i, predicted = s.begin(a.entity, to, from); !predicted {
					l.asked = append(l.asked, a) // nothing is known of it yet
					continue
				}
			}
			r := &s.rows[i]
			r.chosen = !s.world.Has(a.entity, s.ids.mine) && !r.named
			if began && r.unowned {
				l.past(i)
				r.slide = slide{lag: max(0, at.Sub(l.shown(a.entity)))}
			}
			r.slide.releasing = false
			r.slide.aim(r.slide.lag, a.blend, s.run.Seconds)
		case predicted:
			l.leave(a.entity)
			if a.blend == 0 {
				s.release(i)
				continue
			}
			r := &s.rows[i]
			r.slide.releasing = true
			r.slide.aim(at.Sub(l.shown(a.entity))-r.slide.lag, a.blend, s.run.Seconds)
		default:
			l.leave(a.entity)
		}
	}
}

// leave notes that an entity which would be predicted without a call is not to be.
func (l *slides) leave(e ecs.Entity) {
	if w := l.sim.world; w.Has(e, l.sim.ids.mine) || w.Has(e, l.sim.ids.born) {
		l.left[e] = struct{}{}
	}
}

// aim sets the rate so that a distance is covered in the given time.
func (l *slide) aim(ticks float64, blend time.Duration, seconds float64) {
	l.rate = quickest
	if b := blend.Seconds() / seconds; b > 0 {
		l.rate = min(quickest, max(ticks, 0)/b)
	}
	l.rate = max(l.rate, 0.01)
}

// shown returns the time at which an entity that is not predicted is shown.
func (l *slides) shown(e ecs.Entity) replication.Time {
	apply := l.sim.inside.Apply
	newest, _ := apply.View.Tick(e)
	if apply.Shown == nil {
		return replication.Time{Tick: newest}
	}
	at, ok := apply.Shown()
	if !ok {
		return replication.Time{Tick: newest}
	}
	return replication.Time{Tick: at.Tick, Fraction: float32(at.Part) / blend.Parts}
}

// slide moves the times at which entities are drawn on by some ticks.
func (l *slides) slide(ticks float64, at replication.Time) {
	s := l.sim
	for i := range s.rows {
		r := &s.rows[i]
		if r.entity.IsZero() || !r.slide.releasing && r.slide.lag == 0 || !archeutil.Alive(s.world, r.entity) {
			continue
		}
		if !r.slide.releasing {
			r.slide.lag = max(0, r.slide.lag-r.slide.rate*ticks)
			continue
		}
		l.past(uint32(i))
		r.slide.lag += r.slide.rate * ticks
		if behind := at.Sub(l.shown(r.entity)); r.slide.lag >= behind {
			r.slide.lag = behind
			r.slide.done = true
		}
	}
}

// sliding reports whether any entity slides.
func (l *slides) sliding() bool {
	for i := range l.sim.rows {
		if slide := &l.sim.rows[i].slide; slide.releasing || slide.lag > 0 {
			return true
		}
	}
	return false
}

// arrive ends the prediction of what has slid back to the time shown, and was drawn there.
func (l *slides) arrive() {
	for i := range l.sim.rows {
		if l.sim.rows[i].slide.done {
			l.sim.letGo(uint32(i))
		}
	}
}

// past gives the columns what is shown of an entity in the ticks from the time shown to its newest state.
func (l *slides) past(i uint32) {
	s := l.sim
	r := &s.rows[i]
	from := l.shown(r.entity).Tick
	if oldest := s.oldest(); from.Before(oldest) {
		from = oldest
	}
	for g := range s.groups {
		slot := s.slot(r.entity, g)
		if slot == nil {
			continue
		}
		until := slot.Newest
		if until.After(s.newest) {
			until = s.newest
		}
		for tick := from; !tick.After(until); tick++ {
			l.fill(i, g, tick, slot)
		}
	}
	if from.Before(r.first) {
		r.first = from
	}
}

// fill gives the columns what held states show of a group of an entity at a tick.
func (l *slides) fill(i uint32, g int, tick replication.Tick, slot *receive.Replica) {
	s := l.sim
	before, after := slot.Held.Around(tick)
	if before == nil || before.Layout == nil {
		return
	}
	for _, n := range s.groups[g].columns {
		c := s.columns[n]
		h := c.inside()
		a := before.Row(h.number, h.comp.Words)
		if a == nil {
			continue
		}
		dst := c.at(tick, i)
		s.write(h.comp, dst, a)
		if after == nil || after.Layout == nil || after.Generation != before.Generation {
			continue
		}
		b := after.Row(h.number, h.comp.Words)
		if b == nil || h.kernel.CutBetween(a, b) {
			continue
		}
		set := before.Tick
		if rested, ok := after.Rested(); ok && rested.After(set) {
			set = rested
		}
		if f := blend.NewSpan(set, after.Tick).Fraction(blend.Time{Tick: tick}); f > 0 {
			second := c.prepared()
			c.set(second, dst)
			h.comp.Write(second, b)
			h.kernel.Prepare(dst, second)
			if !h.kernel.Snaps(dst, second, after.Tick-set) {
				h.kernel.Mix(dst, dst, second, float32(math.Min(float64(f), 1)))
			}
		}
	}
}

package predict

import (
	"reflect"
	"slices"
	"time"

	"github.com/arche-replicate/arche-replicate/replication"
	"github.com/mlange-42/arche/ecs"
)

// Once makes an effect happen, such as a sound or an explosion: at a client that predicts, the function of [OnEffect]
// is called for it once, however often the tick is simulated. by and key distinguish effects of a type in a tick.
// If the tick is simulated again without the effect, it is cancelled. At a server Once does nothing.
func Once[E any](t *Tick, by ecs.Entity, key uint32, effect E) {
	p := t.end.predictor()
	if p == nil {
		return
	}
	if list, ok := p.sim.effects.lists[reflect.TypeFor[E]()].(*effectList[E]); ok {
		list.happens(effectKey{by, t.Number, key}, effect)
	}
}

// OnEffect sets the functions for effects of type E that are predicted. begin gets the effect and how long ago it
// happened, which is more than a frame if the client learns of it late: start in its middle. cancel is called if it
// turns out that it did not happen; nil leaves it. Both are called in Frame, when the world is as it is to be drawn,
// and may change it.
//
// Panics if begin is nil, or there are functions for this type already.
func OnEffect[E any](p *Predictor, begin func(effect E, age time.Duration), cancel func(effect E)) {
	p.mustExist()
	if begin == nil {
		panic("predict: OnEffect needs a function that begins the effect")
	}
	key := reflect.TypeFor[E]()
	if p.sim.effects.lists[key] != nil {
		panic("predict: OnEffect: there is one for " + key.String() + " already")
	}
	if p.sim.effects.lists == nil {
		p.sim.effects.lists = map[reflect.Type]effectsOfType{}
	}
	list := &effectList[E]{begin: begin, cancel: cancel}
	p.sim.effects.lists[key] = list
	p.sim.effects.order = append(p.sim.effects.order, list)
}

// effects are what happened in the ticks that may be simulated again.
type effects struct {
	lists map[reflect.Type]effectsOfType
	order []effectsOfType
}

type effectsOfType interface {
	suspect(after replication.Tick)
	flush(s *simulation, at replication.Time)
	drop()
}

// suspect makes effects after a tick go away unless they happen again.
func (e *effects) suspect(after replication.Tick) {
	for _, list := range e.order {
		list.suspect(after)
	}
}

// flush calls the functions of the user. at is what is drawn.
func (e *effects) flush(s *simulation, at replication.Time) {
	for _, list := range e.order {
		list.flush(s, at)
	}
}

func (e *effects) drop() {
	for _, list := range e.order {
		list.drop()
	}
}

type effectKey struct {
	by   ecs.Entity
	tick replication.Tick
	key  uint32
}

type effectList[E any] struct {
	begin  func(effect E, age time.Duration)
	cancel func(effect E)
	items  []effectItem[E]
}

type effectItem[E any] struct {
	key   effectKey
	value E
	begun bool
	real  bool // it happened in the latest run of its tick
}

func (l *effectList[E]) happens(key effectKey, effect E) {
	for i := range l.items {
		if l.items[i].key == key {
			l.items[i].real = true
			return
		}
	}
	l.items = append(l.items, effectItem[E]{key: key, value: effect, real: true})
}

func (l *effectList[E]) suspect(after replication.Tick) {
	for i := range l.items {
		if item := &l.items[i]; item.key.tick.After(after) {
			item.real = false
		}
	}
}

func (l *effectList[E]) flush(s *simulation, at replication.Time) {
	for i := range l.items { // as it is noted in time, a function that panics is not called twice
		switch item := &l.items[i]; {
		case item.real && !item.begun:
			item.begun = true
			s.stats.Effects++
			age := at.Sub(replication.Time{Tick: item.key.tick - 1}) * s.run.Seconds
			l.begin(item.value, max(0, time.Duration(age*float64(time.Second))))
		case !item.real && item.begun:
			item.begun = false
			s.stats.Cancelled++
			if l.cancel != nil {
				l.cancel(item.value)
			}
		}
	}
	oldest := s.oldest()
	l.items = slices.DeleteFunc(l.items, func(item effectItem[E]) bool {
		return !item.real || item.key.tick.Before(oldest)
	})
}

func (l *effectList[E]) drop() {
	clear(l.items)
	l.items = l.items[:0]
}

package main

import (
	"bytes"
	"fmt"
	"io"
	"math"
	"reflect"
	"time"

	"github.com/mlange-42/arche/ecs"

	"github.com/arche-replicate/arche-replicate/replication"
	"github.com/arche-replicate/arche-replicate/replication/interpolation"
)

// vector is a position. With two axes, the third is 0.
type vector [3]float64

func (v vector) distance(w vector) float64 {
	return math.Hypot(math.Hypot(v[0]-w[0], v[1]-w[1]), v[2]-w[2])
}

// film is what a player saw of one entity, and what there was to see. Times are in ticks from the first one of the
// trace on.
type film struct {
	entity uint64
	name   string // of the entity
	axes   *axes
	rate   float64 // ticks per second
	oneWay float64 // how long the fastest packets take
	truth  []truth // by tick
	frames []frame
	stats  interpolation.Stats
	faults mismatches
}

// truth is where the entity was at a tick.
type truth struct {
	at    vector
	alive bool
}

// frame is one that was drawn.
type frame struct {
	time   float64
	shown  float64 // the moment that was shown
	newest vector  // the place in the newest state
	drawn  vector  // the place that was shown
	alive  bool    // in this frame, the entity was shown
}

// truthAt returns where the entity was at any time: between ticks it moves linearly.
func (f *film) truthAt(time float64) (at vector, ok bool) {
	i := int(math.Floor(time))
	if i < 0 || i >= len(f.truth) || !f.truth[i].alive {
		return at, false
	}
	a := f.truth[i]
	b, part := a, time-float64(i)
	if i+1 < len(f.truth) && f.truth[i+1].alive {
		b = f.truth[i+1]
	}
	for k := range at {
		at[k] = a.at[k] + (b.at[k]-a.at[k])*part
	}
	return at, true
}

// stepsPerSecond is how finely packets are timed, at least.
const stepsPerSecond = 1000

// maxRenderRate is the library's.
const maxRenderRate = 1000

// shoot replays a trace and films one entity: that of -entity, or the one that moves most.
func shoot(cfg config, data []byte, progress func(tick int64, live int)) (*film, error) {
	trace, where, release, err := openPlaces(cfg, data)
	if err != nil {
		return nil, err
	}
	defer release()
	entity, err := cfg.entity.numberIn(trace)
	if !cfg.entityChosen {
		entity, err = liveliest(cfg, data)
	}
	if err != nil {
		return nil, err
	}
	rate := max(math.Round(trace.rate), 1)
	if rate > maxRenderRate {
		return nil, fmt.Errorf("%s has %v ticks per second, but -render draws up to %d", cfg.name(), trace.rate,
			maxRenderRate)
	}
	p, err := newReplayOf(cfg, trace, replication.WithTickRate(int(rate)))
	if err != nil {
		return nil, err
	}
	p.progress = progress
	down, _ := split(cfg.rtt)
	c := camera{
		replay: p,
		film:   film{entity: entity, name: nameOf(trace, entity), axes: where, rate: rate, oneWay: float64(down)},
		steps:  int(math.Ceil(stepsPerSecond / rate)),
		view:   newView(p.mirrors[0], where),
	}
	if err := c.shoot(); err != nil {
		return nil, err
	}
	c.film.stats, c.film.faults = c.view.play.Stats(), p.faults
	return &c.film, nil
}

// openPlaces reads a trace's header and makes its position a component.
func openPlaces(cfg config, data []byte) (trace *reader, where *axes, release func(), err error) {
	trace, release, err = openRows(cfg, bytes.NewReader(data))
	if err != nil {
		return nil, nil, nil, err
	}
	if where, err = trace.carve(); err != nil {
		release()
		return nil, nil, nil, err
	}
	return trace, where, release, nil
}

// liveliest returns the entity that goes the longest way.
func liveliest(cfg config, data []byte) (entity uint64, err error) {
	trace, where, release, err := openPlaces(cfg, data)
	if err != nil {
		return 0, err
	}
	defer release()
	type journey struct {
		last  vector
		alive bool
		way   float64
	}
	journeys := map[uint64]*journey{}
	var longest *journey
	first := uint64(0)
	for err = trace.next(); err == nil; err = trace.next() {
		if longest == nil && len(journeys) == 0 {
			first = trace.tick
		}
		if cfg.over(trace.tick - first) {
			break
		}
		j := journeys[trace.entity]
		if j == nil {
			j = &journey{}
			journeys[trace.entity] = j
		}
		at, ok := where.position(trace)
		if ok && j.alive {
			j.way += at.distance(j.last)
		}
		j.last, j.alive = at, ok
		if ok && (longest == nil || j.way > longest.way) {
			longest, entity = j, trace.entity
		}
	}
	switch {
	case err != nil && err != io.EOF:
		return 0, err
	case longest == nil:
		return 0, fmt.Errorf("no entity in %s has a position", cfg.name())
	}
	return entity, nil
}

// camera makes a film. It divides ticks into steps, so that packets arrive between ticks, too, and frames are drawn
// whenever it is time.
type camera struct {
	replay *replay
	film   film
	steps  int // of a tick
	view   view

	base replication.Tick    // the server's tick at the trace's first one
	ids  []replication.NetID // the entity's network IDs that the client may show, the newest last
}

// shoot plays the trace to its end, or to that of -ticks.
func (c *camera) shoot() error {
	p := c.replay
	m := p.mirrors[0]
	p.cfg.weather(m.link, false, c.steps)
	dt := time.Duration(float64(time.Second) / p.cfg.fps)
	ticksPerFrame := c.film.rate / p.cfg.fps
	err := p.trace.next()
	if err != nil {
		return err
	}
	first, end := p.trace.tick, false
	for step := int64(0); ; step++ {
		now := step / int64(c.steps)
		p.receive(now)
		if step%int64(c.steps) == 0 {
			if end {
				return nil
			}
			if end, err = c.tick(first, now); err != nil {
				return err
			}
		}
		for at := float64(step) / float64(c.steps); float64(len(c.film.frames))*ticksPerFrame <= at; {
			if _, err := m.see(now, dt); err != nil {
				return err
			}
			c.film.frames = append(c.film.frames, c.draw(m, at))
		}
		m.send(now)
		m.link.Step()
	}
}

// tick plays a tick of the trace. It reports whether that was the last one.
func (c *camera) tick(first uint64, now int64) (end bool, err error) {
	p := c.replay
	last := truth{}
	if n := len(c.film.truth); n > 0 {
		last = c.film.truth[n-1]
	}
	for err == nil && p.trace.tick == first+uint64(now) {
		p.stage.play(p.trace)
		if p.trace.entity == c.film.entity {
			last.at, last.alive = c.film.axes.position(p.trace)
		}
		err = p.trace.next()
	}
	if err != nil && err != io.EOF {
		return false, err
	}
	p.stage.settle()
	c.film.truth = append(c.film.truth, last)
	p.server.Replicate()
	if now == 0 {
		c.base = p.server.Tick()
	}
	if id, ok := p.server.NetID(p.stage.actors[c.film.entity]); ok && (len(c.ids) == 0 || c.ids[len(c.ids)-1] != id) {
		c.ids = append(c.ids, id)
	}
	if p.progress != nil {
		p.progress(now, len(p.stage.actors))
	}
	return err == io.EOF || p.cfg.over(uint64(now)+1), nil
}

// draw returns what the client shows.
func (c *camera) draw(m *mirror, at float64) frame {
	f := frame{time: at}
	moment, ok := c.view.play.Time()
	if !ok {
		return f
	}
	f.shown = moment.Sub(replication.Time{Tick: c.base})
	for i := len(c.ids) - 1; i >= 0; i-- {
		e, ok := m.client.Entity(c.ids[i])
		if !ok {
			continue
		}
		c.ids = c.ids[i:] // the client does not go back to an earlier life
		newest, hasNewest := c.view.newest(e)
		drawn, hasDrawn := c.view.drawn(e)
		f.newest, f.drawn, f.alive = newest, drawn, hasNewest && hasDrawn
		break
	}
	return f
}

// view is the interpolation of a mirror.
type view struct {
	play          *interpolation.Interpolation
	newest, drawn func(e ecs.Entity) (vector, bool)
}

func newView(m *mirror, where *axes) view {
	if where.scalar.Kind() == reflect.Float64 {
		return viewOf[float64](m)
	}
	return viewOf[float32](m)
}

// drawn has the interpolated position. The position itself stays that of the newest state.
type drawn[F float32 | float64] place[F]

func viewOf[F float32 | float64](m *mirror) view {
	play := interpolation.Attach(m.client)
	interpolation.Into[place[F], drawn[F]](play)
	read := func(id ecs.ID) func(e ecs.Entity) (vector, bool) {
		return func(e ecs.Entity) (vector, bool) {
			p := (*place[F])(m.world.Get(e, id)) // drawn has the same memory
			if p == nil {
				return vector{}, false
			}
			return vector{float64(p.X), float64(p.Y), float64(p.Z)}, true
		}
	}
	return view{play, read(ecs.ComponentID[place[F]](&m.world)), read(ecs.ComponentID[drawn[F]](&m.world))}
}

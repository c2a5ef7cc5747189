package main

import (
	"cmp"
	"fmt"
	"io"
	"math"
	"reflect"
	"slices"
	"strings"
	"time"

	"github.com/mlange-42/arche/ecs"

	"github.com/arche-replicate/arche-replicate/replication"
	"github.com/arche-replicate/arche-replicate/replication/recording"
)

// recorded makes rows of a recording: it is played tick by tick, and what changed in its world is a row each. The
// number of an entity is its network ID, slot * 65536 + generation. Resources are components of an entity of their own,
// resourceEntity.
type recorded struct {
	recordedWorld
	notes  *notes
	player *recording.Player
	steps  [][]int // by column: from the value of its type

	client    bool // a client recorded it, frame by frame
	ahead     bool // a step was played to get the rate
	latest    replication.Tick
	resources bool // there are some
	filter    bool // what has no new state has not changed
	tick      uint64
	round     uint64           // number of the step
	queue     []recordedEntity // of the tick
	at        int              // of the queue
	lives     map[uint64]*recordedLife
}

// resourceEntity is no entity's number: the slot 0 is that of resources.
const resourceEntity = 0

// recordedEntity is an entity in the player's world. It is zero for resources.
type recordedEntity struct {
	number uint64
	entity ecs.Entity
}

// recordedLife is what is known of an entity.
type recordedLife struct {
	row
	known bool // the tick of its state is
	state replication.Tick
	round uint64 // number of the latest step in which it was there
}

// newRecordedReader opens a recording.
func newRecordedReader(cfg config, file io.ReaderAt, size int64) (*reader, error) {
	refuse := func(format string, args ...any) error {
		return &fault{file: cfg.name(), reason: strings.TrimPrefix(fmt.Sprintf(format, args...), "recording: ")}
	}
	info, err := recording.ReadInfo(file, size)
	if err != nil {
		return nil, refuse("%v", err)
	}
	if info.Duration > longestRecording {
		return nil, refuse("it lasts %v, which is more than %v", info.Duration, longestRecording)
	}
	text, err := schemaOf(info.Schema)
	if err != nil {
		return nil, refuse("%v", err)
	}
	r := &reader{file: cfg.name(), empty: true}
	d := &recorded{notes: cfg.notes, lives: map[uint64]*recordedLife{}}
	d.world, d.types = ecs.NewWorld(), text.types
	d.client = info.TickRate == 0
	d.filter = !text.conditional && !d.client
	left := d.describe(&r.header)
	if len(r.components) == 0 || len(text.types) > maxTypes {
		return nil, refuse("it has %d types, and %d of them are components: a trace has 1 to %d", len(text.types),
			len(r.components), maxComponents)
	}
	if d.player, err = recording.NewPlayer(&d.world, text.schema, file, size); err != nil {
		return nil, refuse("%v", err)
	}
	d.register()
	for i := range d.types {
		d.resources = d.resources || d.types[i].word == "resource"
	}
	if text.conditional {
		left = append(left, "conditions such as OwnerOnly (all components are replicated to everybody)")
	}
	for rate := info.TickRate; ; rate = d.player.Client().TickRate() {
		if r.rate = float64(rate); rate > 0 {
			break
		}
		if err := d.play(r); err != nil {
			return nil, err
		}
		d.ahead = true
	}
	if d.client {
		d.notes.add("%s: a client recorded it: it has what that client received, when it did", cfg.name())
	}
	if len(left) > 0 {
		d.notes.add("%s: left out: %s", cfg.name(), strings.Join(left, "; "))
	}
	r.recorded = d
	r.row = r.newRow()
	return r, nil
}

// longestRecording bounds the ticks of a file that is damaged.
const longestRecording = 240 * time.Hour

// maxTypes limits components, resources, messages and the input: as many as worlds and schemas have.
const maxTypes = 2 * maxComponents

// describe makes the header of the recording's types. It returns what a trace can't have.
func (d *recorded) describe(h *header) (left []string) {
	var relations, messages []string
	for i := range d.types {
		t := &d.types[i]
		if t.word == "message" || t.word == "input" {
			messages = append(messages, t.name)
			continue
		}
		c := component{name: t.name, source: i}
		for _, f := range t.fields {
			for _, way := range f.steps(t.typ) {
				h.columns, d.steps = append(h.columns, f.fullName(t.name)), append(d.steps, way)
			}
			f.column = len(h.columns) - f.length
			if f.scalar() == relationType {
				relations = append(relations, t.name)
				continue
			}
			c.fields = append(c.fields, f)
		}
		c.typ = structOf(c.name, c.fields)
		h.components = append(h.components, c)
		h.tables += t.tables
	}
	if len(relations) > 0 {
		left = append(left, "targets of relations ("+strings.Join(relations, ", ")+")")
	}
	if len(messages) > 0 {
		left = append(left, "messages and inputs ("+strings.Join(messages, ", ")+")")
	}
	return left
}

// next makes the next row. At the end of the recording it returns io.EOF.
func (d *recorded) next(r *reader) error {
	for {
		for d.at < len(d.queue) {
			e := d.queue[d.at]
			d.at++
			if d.read(r, e) {
				r.tick, r.entity, r.empty = d.tick, e.number, false
				return nil
			}
		}
		if err := d.step(r); err != nil {
			return err
		}
	}
}

// play lets the player step.
func (d *recorded) play(r *reader) error {
	if d.player.Ended() {
		if damage := d.player.Damage(); damage != nil {
			d.notes.add("%s: %s", r.file, strings.TrimPrefix(damage.Error(), "recording: "))
		}
		if r.empty {
			return &fault{file: r.file, reason: "no entity was recorded"}
		}
		return io.EOF
	}
	if err := d.player.Step(); err != nil {
		return &fault{file: r.file, reason: err.Error()}
	}
	return nil
}

// step plays a tick, or a frame of a client.
func (d *recorded) step(r *reader) error {
	if !d.ahead {
		if err := d.play(r); err != nil {
			return err
		}
	}
	d.ahead = false
	if d.client {
		d.follow()
	} else {
		d.tick = uint64(math.Round(d.player.Position().Seconds() * r.rate))
	}
	d.round++
	d.queue, d.at = d.queue[:0], 0
	for id, e := range d.player.Client().Entities() {
		d.meet(r, recordedEntity{numberOf(id), e})
	}
	if d.resources {
		d.meet(r, recordedEntity{number: resourceEntity})
	}
	d.bury()
	return nil
}

// longestWait is the largest step of the ticks that a client receives: more, or back, is another server.
const longestWait = 1 << 16

// follow adds the ticks of the server to those of the trace.
func (d *recorded) follow() {
	now := d.player.Client().Tick()
	if step := uint32(now - d.latest); d.round > 0 && step < longestWait {
		d.tick += uint64(step)
	} else if d.round > 0 {
		d.tick++
	}
	d.latest = now
}

// meet queues an entity that is there, unless it can't have changed.
func (d *recorded) meet(r *reader, e recordedEntity) {
	life := d.lives[e.number]
	if life == nil {
		life = &recordedLife{row: r.newRow()}
		d.lives[e.number] = life
	}
	life.round = d.round
	if state, ok := d.player.Client().StateTick(e.entity); ok && d.filter {
		if life.known && life.state == state {
			return
		}
		life.known, life.state = true, state
	}
	d.queue = append(d.queue, e)
}

// bury queues the entities that are gone, before others: one of those may have the slot of one that is gone.
func (d *recorded) bury() {
	n := len(d.queue)
	for number, life := range d.lives {
		if life.round != d.round {
			d.queue = append(d.queue, recordedEntity{number: number})
		}
	}
	gone := d.queue[n:]
	slices.SortFunc(gone, func(a, b recordedEntity) int { return cmp.Compare(a.number, b.number) })
	if len(gone) > 0 {
		d.queue = slices.Concat(gone, d.queue[:n])
	}
}

// read makes a row of an entity, and returns false if it is that of the latest one.
func (d *recorded) read(r *reader, e recordedEntity) (changed bool) {
	life := d.lives[e.number]
	r.row = life.row
	if life.round != d.round {
		delete(d.lives, e.number)
		clear(life.has)
		return true
	}
	for i := range r.components {
		c := &r.components[i]
		value, has := d.value(c.source, e.entity)
		if has != life.has[i] {
			life.has[i], changed = has, true
		}
		if !has {
			continue
		}
		for j := range c.fields {
			f := &c.fields[j]
			for k := f.column; k < f.column+f.length; k++ {
				if f.scalar() == entityType {
					target := d.number(follow(value, d.steps[k]))
					changed = changed || target != life.targets[k]
					life.targets[k] = target
				} else if update(life.cells[k], follow(value, d.steps[k])) {
					changed = true
				}
			}
		}
	}
	return changed
}

// number returns the number of the entity to which a field refers.
func (d *recorded) number(field reflect.Value) uint64 {
	if id, ok := d.player.Client().NetID(field.Interface().(ecs.Entity)); ok {
		return numberOf(id)
	}
	return noTarget
}

func numberOf(id replication.NetID) uint64 { return uint64(id.Slot)<<16 | uint64(id.Generation) }

// update sets a value to another one, and returns false if it is that. Floats are the same if their bits are.
func update(to, from reflect.Value) bool {
	if from.Type() != to.Type() {
		from = from.Convert(to.Type())
	}
	same := false
	switch to.Kind() {
	case reflect.Float32, reflect.Float64:
		same = math.Float64bits(to.Float()) == math.Float64bits(from.Float())
	default:
		same = to.Equal(from)
	}
	if !same {
		to.Set(from)
	}
	return !same
}

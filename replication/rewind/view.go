package rewind

import (
	"errors"
	"fmt"
	"math"
	"unsafe"

	"github.com/arche-replicate/arche-replicate/delta"
	"github.com/arche-replicate/arche-replicate/replication"
	"github.com/arche-replicate/arche-replicate/replication/internal/ackstate"
	"github.com/arche-replicate/arche-replicate/replication/internal/archeutil"
	"github.com/arche-replicate/arche-replicate/replication/internal/arrival"
	"github.com/arche-replicate/arche-replicate/replication/internal/blend"
	"github.com/arche-replicate/arche-replicate/replication/internal/history"
	"github.com/arche-replicate/arche-replicate/replication/internal/message"
	"github.com/arche-replicate/arche-replicate/replication/internal/schema"
	"github.com/arche-replicate/arche-replicate/replication/internal/seam"
	"github.com/arche-replicate/arche-replicate/replication/internal/wire"
	"github.com/mlange-42/arche/ecs"
)

// A View is what one client showed at one moment. It is valid until the next Replicate, and costs nothing to copy. The
// zero View, which is returned with an error, shows nothing.
type View struct {
	history *History
	acked   *ackstate.Tracker
	time    blend.Time
	newest  delta.Tick // the newest tick whose state the client probably had
	latest  delta.Tick // the newest tick whose state it may have had
	newer   delta.Tick // from the time shown to newest, for components that clients show newest
	peer    *replication.Peer
}

var (
	// ErrNoStamp is the error of [History.View] if no input of the last ticks carries the time shown. The client may
	// not interpolate, or not have begun to.
	ErrNoStamp = errors.New("rewind: the input does not carry the time shown: " +
		"the client needs interpolation.Attach, and the schema an input, see replication.RegisterInput")
	// ErrTooOld is the error if the client showed a time that is further back than [Limit] allows.
	ErrTooOld = errors.New("rewind: the client showed a time that is too long ago")
	// ErrImplausible is the error if the client can't have shown the time that it claims, or jumps between times as no
	// interpolation does.
	ErrImplausible = errors.New("rewind: the client claims a time that it can't have shown")
)

// View returns what a client showed when it gave its input for a tick. If the input for that tick is missing, the view
// is that of the input that [replication.Input] returns instead, moved on by the ticks between.
//
// The errors are [ErrNoStamp], [ErrTooOld] and [ErrImplausible]; the last two are wrapped with the numbers. After an
// error, judge by the present state, or not at all. An honest client gets ErrImplausible for half a second after the
// time that it shows has jumped, for instance because its process stood still, and for up to one in twenty views at
// less than six frames per second, or while short frames and frames of a fifth of a second alternate, or more if many
// packets get lost there.
//
// Panics if the peer is of another server.
func (h *History) View(p *replication.Peer, inputTick replication.Tick) (View, error) {
	h.mustExist()
	in := seam.OfPeer(p)
	if in.Server != any(h.server) {
		panic("rewind: View of a peer of another server: use one that this server's Connect returned")
	}
	if in.Messages == nil {
		return View{}, ErrNoStamp
	}
	tick := inputTick
	given, ok := in.Messages.Inputs.NewestStamp(tick)
	if !ok {
		return View{}, ErrNoStamp
	}
	w := h.watches[p]
	if w == nil || w.messages != in.Messages {
		w = &watch{messages: in.Messages}
		h.watches[p] = w
	}
	if !w.steady(given, in.Acked.Interval, &h.limits) {
		return View{}, fmt.Errorf("%w: its input for tick %d jumps from the times of the inputs before",
			ErrImplausible, given)
	}
	input, _ := in.Messages.Inputs.Stamp(given)
	if err := h.check(timeOf(&input.Shown), input.Acked, in.Acked); err != nil {
		return View{}, err
	}
	v := View{history: h, acked: in.Acked, time: timeOf(&input.Shown), peer: p}
	v.newest, v.latest = newestOf(&input, in.Acked, w.late(given)), newestOf(&input, in.Acked, 0)
	v.newer = v.newest - v.time.Tick
	if v, ok = v.Later(int(tick - given)); !ok {
		return View{}, ErrNoStamp // the tick is to come
	}
	return v, nil
}

// newestOf returns the newest tick whose state a client probably had when it gave an input: one that it had
// acknowledged, or one that came a round trip before the input did, since acknowledgements get lost. If the input came
// later than usual by some ticks, newer states than the client had may have been acknowledged meanwhile.
func newestOf(in *message.Stamped, acked *ackstate.Tracker, late delta.Tick) delta.Tick {
	came := in.Arrived - late - delta.Tick(acked.Trip.Smooth+7)/8
	if acked.Trip.Smooth > 0 && (late > 0 || came.After(in.Acked)) {
		return came
	}
	return in.Acked
}

// timeOf returns the time that a stamp has.
func timeOf(s *wire.Stamp) blend.Time { return blend.Time{Tick: s.Tick, Part: s.Part} }

// check returns an error if a client can't have shown a time, or if that is too long ago. acked is the newest tick that
// it had acknowledged when its input arrived.
func (h *History) check(at blend.Time, acked delta.Tick, of *ackstate.Tracker) error {
	now, newest := h.in.Snap.Tick, acked
	if of.AnyAcked && of.Recent.After(newest) {
		newest = of.Recent // acknowledgements may come later than the input
	}
	latest := now
	if missing, ok := of.Awaited(newest); ok { // else there was nothing newer: an idle world is sent seldom
		latest = missing + h.limits.ahead
	}
	if at.Tick.After(latest) || at.Tick.After(now) {
		return fmt.Errorf("%w: tick %d, where tick %d is the newest that it has acknowledged",
			ErrImplausible, at.Tick, newest)
	}
	if age := now - at.Tick; age > h.limits.rewind {
		return fmt.Errorf("%w: %d ticks, more than the %d of Limit", ErrTooOld, age, h.limits.rewind)
	}
	if late := int32(acked - at.Tick); late > int32(h.limits.delay) {
		return fmt.Errorf("%w: it had states %d ticks newer, more than the %d of Delay",
			ErrImplausible, late, h.limits.delay)
	}
	return nil
}

// Time returns the moment of the view.
func (v View) Time() replication.Time {
	return replication.Time{Tick: v.time.Tick, Fraction: float32(v.time.Part) / blend.Parts}
}

// Peer returns the peer whose view it is.
func (v View) Peer() *replication.Peer { return v.peer }

// Later returns what the same client shows a number of ticks later, if its time passes at the usual speed: for a
// projectile, which moves on from tick to tick among what its shooter saw. It returns false if that is after the latest
// tick: from there on, the projectile is among the present states.
func (v View) Later(ticks int) (View, bool) {
	if v.history == nil || ticks > math.MaxInt32 || ticks < -math.MaxInt32 { // out of reach of serial arithmetic
		return v, false
	}
	left := int(int32(v.history.in.Snap.Tick - v.time.Tick))
	v.time.Tick += delta.Tick(ticks)
	return v, ticks <= left
}

// shows reports whether the client showed an entity. It does not know those that are not replicated.
func (v *View) shows(e ecs.Entity) bool {
	s := v.history.in.Snap
	slot, ok := s.SlotOf(e)
	if !ok {
		return archeutil.Alive(s.World, e)
	}
	var r arrival.Around
	return v.around(&r, slot)
}

// around stores in r what the client held of a slot, and reports whether that is anything.
func (v *View) around(r *arrival.Around, slot int) (some bool) {
	v.acked.Around(r, slot, v.history.in.Snap.Slots.Info[slot].Born, v.time.Tick)
	if r.After && r.To.After(v.newest) {
		// It probably came later. But if it is the next one in turn, the time shown is so far behind that it had come.
		// And of an entity that is new to the client, the first state is shown as soon as it comes.
		r.After = r.Before && r.To-r.From <= v.acked.Interval || !r.Before && !r.To.After(v.latest)
	}
	return r.Before || r.After
}

// value stores at p what the client showed of a component in a slot, by the rules of package interpolation.
func (v *View) value(k *kept, slot int, p unsafe.Pointer) bool {
	var r arrival.Around
	v.around(&r, slot)
	first, second := v.rows(k, slot, &r)
	if first == nil {
		return false
	}
	v.refer(k.comp, p, first)
	if second == nil || cutsBetween(v.history.cuts, slot, &r) || k.kernel.CutBetween(first, second) {
		k.comp.Write(p, first)
		return true
	}
	f := blend.NewSpan(r.Rested, r.To).Fraction(v.time)
	if k.curve == nil && k.comp.Shown.Snap == 0 {
		k.kernel.Blend(p, first, second, f)
		return true
	}
	k.comp.Write(p, first)
	k.comp.Write(k.second, second)
	k.kernel.Prepare(p, k.second)
	if k.kernel.Snaps(p, k.second, r.To-r.Rested) {
		return true
	}
	bent := v.bend(k, slot, &r, k.second)
	k.kernel.Mix(p, p, k.second, f)
	if bent {
		k.curve.Bend(p, k.from, k.to, f)
	}
	return true
}

// bend finds the velocities at both ends of the way between two states, which the kernel has prepared. It returns false
// if the way is straight.
func (v *View) bend(k *kept, slot int, r *arrival.Around, way unsafe.Pointer) bool {
	var versions history.Versions
	if k.curve == nil || !k.velocities.Find(slot, &versions) {
		return false
	}
	first, second := v.row(&versions, r.From, r.Lost), v.row(&versions, r.To, false)
	if first == nil || second == nil {
		return false
	}
	k.curve.Velocity.Write(k.from, first)
	k.curve.Velocity.Write(k.to, second)
	k.curve.Prepare(way, k.from, k.to, r.To-r.Rested)
	return true
}

// refer makes the fields of a value refer to the entities that a row names.
func (v *View) refer(c *schema.Component, p unsafe.Pointer, row []uint32) {
	for i, k := range c.References {
		if i > 0 || !c.Targeted() {
			c.WriteEntity(p, k, v.named(row[c.Columns[k].Word:]))
		}
	}
}

// named returns the entity that the words of a reference name, or the zero entity if the client did not show it, or if
// it no longer exists.
func (v *View) named(words []uint32) (e ecs.Entity) {
	s, slot := v.history.in.Snap, int(words[0])-1
	if slot < 0 || slot >= s.Slots.Len() || s.Slots.Info[slot].Generation != uint16(words[1]) {
		return e
	}
	var r arrival.Around
	if _, exists := s.SlotOf(s.Slots.Info[slot].Entity); !exists || !v.around(&r, slot) {
		return e
	}
	return s.Slots.Info[slot].Entity
}

// rows returns the rows of a component between which the client blended, the second one nil if there was only one, or
// both nil.
func (v *View) rows(k *kept, slot int, r *arrival.Around) (first, second []uint32) {
	var versions history.Versions
	if !k.past.Find(slot, &versions) {
		return nil, nil
	}
	if k.comp.Shown.Newest {
		return v.newestRow(&versions, slot), nil
	}
	if r.Before {
		if first = v.row(&versions, r.From, r.Lost); first == nil && r.Lost {
			return nil, nil // how the client shows the entity is not known
		}
	}
	if r.After {
		second = v.row(&versions, r.To, false)
	}
	for first == nil && second == nil && r.After { // the component came later than the entity
		if v.acked.Around(r, slot, v.history.in.Snap.Slots.Info[slot].Born, r.To); r.After && r.To.After(v.newest) {
			return nil, nil
		}
		if r.After {
			second = v.row(&versions, r.To, false)
		}
	}
	if first == nil {
		return second, nil // the entity is new to the client, or the component
	}
	return first, second
}

// newestRow returns the row of the newest state that the client had, or nil if it had none.
func (v *View) newestRow(versions *history.Versions, slot int) []uint32 {
	s := v.history.in.Snap
	at := v.time.Tick + v.newer
	if at.After(s.Tick) {
		at = s.Tick
	}
	var r arrival.Around
	if v.acked.Around(&r, slot, s.Slots.Info[slot].Born, at); !r.Before {
		return nil
	}
	return v.row(versions, r.From, r.Lost)
}

// row returns the row of a slot at a tick, or nil if it had none. If that is too long ago to be known, it was probably
// that of the oldest tick for which all rows are known; but not if the entity went out of view before that.
func (v *View) row(versions *history.Versions, at delta.Tick, lost bool) []uint32 {
	row, found := versions.At(at)
	if found == history.Forgotten && !lost {
		row, found = versions.At(v.history.in.Snap.Tick - delta.Tick(v.history.in.Opts.Window))
	}
	if found != history.Present {
		return nil
	}
	return row
}

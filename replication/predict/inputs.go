package predict

import (
	"slices"
	"unsafe"

	"github.com/arche-replicate/arche-replicate/replication"
	"github.com/arche-replicate/arche-replicate/replication/internal/schema"
)

// inputs are what a client's player did, by tick, and what the server is known to have simulated instead.
type inputs interface {
	// advance computes what is simulated in a tick. The one before it was computed.
	advance(tick replication.Tick)
	// miss notes that the server simulated a tick without its input, and reports whether that is new.
	miss(tick replication.Tick) bool
	// settle computes again what is simulated in the ticks from one to another that are known, and returns the first
	// one that changed.
	settle(from, to replication.Tick) (first replication.Tick, changed bool)
	// write writes what is simulated in a tick into a component.
	write(tick replication.Tick, p unsafe.Pointer)
	reset()
}

// inputTicks is how many ticks of inputs are kept: more than those of states, since inputs are simulated after them.
const inputTicks = 2 * depth

type typedInputs[I any] struct {
	model  *Model[I]
	codec  *schema.Component
	ring   [inputTicks]typedInput[I]
	inputs [2]I        // scratch memory
	codes  [2][]uint32 // the same
}

type typedInput[I any] struct {
	tick   replication.Tick
	given  bool // by the player
	missed bool // the server did not have it
	known  bool // simulated is valid
	in     I    // that was given
	age    int  // for how many ticks simulated has been repeated
	sim    I
}

func newInputs[I any](m *Model[I], codec *schema.Component) *typedInputs[I] {
	in := &typedInputs[I]{model: m, codec: codec}
	in.codes[0], in.codes[1] = make([]uint32, codec.Words), make([]uint32, codec.Words)
	return in
}

func (t *typedInputs[I]) reset() { clear(t.ring[:]) }

// at returns the place of a tick, which belongs to that tick from now on.
func (t *typedInputs[I]) at(tick replication.Tick) *typedInput[I] {
	e := &t.ring[tick%inputTicks]
	if e.tick != tick {
		*e = typedInput[I]{tick: tick}
	}
	return e
}

// give notes what the player does in a tick, as the server will have it.
func (t *typedInputs[I]) give(tick replication.Tick, in I) {
	given, sent := &t.inputs[0], &t.inputs[1]
	*given = in
	t.codec.ReadColumn(t.codes[0], unsafe.Pointer(given), 1)
	e := t.at(tick)
	clear(t.inputs[1:]) // without what is not replicated
	t.codec.Write(unsafe.Pointer(sent), t.codes[0])
	for _, i := range t.codec.References {
		t.codec.WriteEntity(unsafe.Pointer(sent), i, t.codec.ReadEntity(unsafe.Pointer(given), i))
	}
	e.in, e.given = *sent, true
}

func (t *typedInputs[I]) advance(tick replication.Tick) {
	e := t.at(tick)
	if e.given && !e.missed {
		e.sim, e.age, e.known = e.in, 0, true
		return
	}
	before := &t.ring[(tick-1)%inputTicks]
	if before.tick != tick-1 || !before.known {
		var zero I
		e.sim, e.age, e.known = zero, longestRepeat+1, true
		return
	}
	e.age = min(before.age+1, longestRepeat+1)
	e.sim, e.known = t.model.replaced(before.sim, e.age), true
}

func (t *typedInputs[I]) miss(tick replication.Tick) bool {
	e := &t.ring[tick%inputTicks]
	if e.tick != tick || !e.given || e.missed {
		return false
	}
	e.missed = true
	return true
}

func (t *typedInputs[I]) settle(from, to replication.Tick) (first replication.Tick, changed bool) {
	for tick := from; !tick.After(to); tick++ {
		e := &t.ring[tick%inputTicks]
		if e.tick != tick || !e.known {
			continue
		}
		old := &t.inputs[0]
		*old = e.sim
		t.advance(tick)
		if !changed && !t.same(old, &e.sim) {
			first, changed = tick, true
		}
	}
	return first, changed
}

// same reports whether two inputs have the same codes.
func (t *typedInputs[I]) same(a, b *I) bool {
	t.codec.ReadColumn(t.codes[0], unsafe.Pointer(a), 1)
	t.codec.ReadColumn(t.codes[1], unsafe.Pointer(b), 1)
	return slices.Equal(t.codes[0], t.codes[1])
}

func (t *typedInputs[I]) write(tick replication.Tick, p unsafe.Pointer) { *(*I)(p) = t.at(tick).sim }

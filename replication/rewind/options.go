package rewind

import (
	"fmt"
	"reflect"

	"github.com/arche-replicate/arche-replicate/delta"
	"github.com/arche-replicate/arche-replicate/replication/internal/arrival"
	"github.com/arche-replicate/arche-replicate/replication/internal/blend"
)

// What the client's play-out was given, the server's history must be given too. The options here have the names of
// those of package playout. Nothing checks that they are the same: options are neither part of the schema nor sent.

// A KeepOption configures a component that [Keep] keeps.
type KeepOption func(h *History, k *kept)

// Step is playout.Step: the fields keep their value until the time of the next state.
//
// Panics if there is no path; [Keep] panics if the component lacks such a field.
func Step(paths ...string) KeepOption { return mode("Step", blend.Step, paths) }

// Linear is playout.Linear: the integer fields move from one value to the next.
//
// Panics if there is no path; [Keep] panics if the component lacks such a field, or if it has no numbers to move.
func Linear(paths ...string) KeepOption { return mode("Linear", blend.Linear, paths) }

func mode(name string, m blend.Mode, paths []string) KeepOption {
	if len(paths) == 0 {
		panic("rewind: " + name + " needs the paths of fields")
	}
	return func(_ *History, k *kept) {
		for _, path := range paths {
			k.modes = append(k.modes, blend.FieldMode{Path: path, Mode: m})
		}
	}
}

// Snap is playout.Snap: a change of more than distance per tick is a teleport.
//
// Panics if distance is not positive.
func Snap(distance float64) KeepOption {
	if !(distance > 0) {
		panic(fmt.Sprintf("rewind: Snap(%v): use the distance above 0 that nothing moves in a tick", distance))
	}
	return func(_ *History, k *kept) { k.snap = distance }
}

// A cut is a component whose changes are discontinuities.
type cut struct {
	past *delta.History
	blend.Cut
}

// Cut is playout.Cut: a change of the component, or of its fields with the given paths, is a discontinuity. Paths are
// those of [replication.Field]. As there, T cuts components that have the same condition as T.
//
// Panics if T is not registered as a component in the schema, or lacks a field.
func Cut[T any](h *History, fields ...string) {
	h.mustExist()
	typ := reflect.TypeFor[T]()
	number, comp := h.component(typ)
	if comp == nil {
		panic(fmt.Sprintf("rewind: Cut: %v is not registered: register it in the schema", typ))
	}
	c, missing := blend.NewCut(comp, fields)
	if missing != "" {
		panic(fmt.Sprintf("rewind: Cut: %v has no replicated field %q", typ, missing))
	}
	h.cuts = append(h.cuts, cut{h.in.Snap.Histories[number], c})
}

// cutsBetween reports whether there is a discontinuity between two states of a slot.
func cutsBetween(cuts []cut, slot int, r *arrival.Around) bool {
	for i := range cuts {
		c := &cuts[i]
		a, before := c.past.At(slot, r.From)
		b, after := c.past.At(slot, r.To)
		if before == delta.Present && after == delta.Present && c.Between(a, b) {
			return true
		}
	}
	return false
}

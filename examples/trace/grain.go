package main

import (
	"io"
	"reflect"

	"github.com/arche-replicate/arche-replicate/replication"
)

// A recording is often only as fine as the step of its field, because the game recorded quantised
// values. Replayed with half the step, such a field differs from the game's own values. Slow
// movement below the old step was never recorded and looks like rest, which is too cheap; and the
// old rounding remains, twice as large in the new steps, so that smooth motion is as hard to
// predict as before, which is too expensive.
//
// It shows in the differences of values: as codes of half the step they are always even, wherever
// the grid begins. Differences in a finer recording are odd as often as even.

// grain counts the changes of a field from row to row, in codes of half its step.
type grain struct{ odd, even int }

const (
	// smallMoves limits the changes that count: over larger ones, a grid that differs slightly from
	// the library's (511 steps where the library has 512) produces odd changes too.
	smallMoves = 64
	// oddShare: 1 in this many small changes must be odd. Half of them are in a recording finer
	// than the step, none in one that is as coarse.
	oddShare = 8
)

// finer reports whether the recording is finer than the step. Without small changes it returns
// false.
func (g grain) finer() bool { return g.odd*oddShare >= g.odd+g.even && g.odd > 0 }

// add counts a change between two codes.
func (g *grain) add(before, after uint64) {
	d := max(before, after) - min(before, after)
	switch {
	case d == 0 || d > smallMoves:
	case d%2 == 0:
		g.even++
	default:
		g.odd++
	}
}

// measureGrain reads a trace once, with the tags of half the step in halves, and returns the grain
// of those fields by their full names.
func measureGrain(cfg config, src io.Reader, halves retags) (map[string]*grain, error) {
	grains := map[string]*grain{}
	for name := range halves {
		grains[name] = &grain{}
	}
	err := eachChange(cfg, src, halves, func(c change) {
		for k, code := range c.codes {
			if g := grains[c.owners[k]]; g != nil {
				g.add(c.before[k], code)
			}
		}
	})
	return grains, err
}

// A change is a component value of an entity that had one in the row before, too.
type change struct {
	tick          uint64
	rate          float64 // ticks per second
	part          part
	owners        []string // the full name of the field of each code
	before, codes []uint64
}

// A part is a component of an entity.
type part struct {
	entity    uint64
	component int
}

// eachChange reads a trace once, with other tags, and calls fn for each change.
func eachChange(cfg config, src io.Reader, tags retags, fn func(c change)) error {
	trace, release, err := openRows(cfg, src)
	if err != nil {
		return err
	}
	defer release()
	trace.retag(tags)
	schema, err := buildSchema(trace.components)
	if err != nil {
		return trace.faultAt(trace.typesLine, err)
	}
	owners, err := codeOwners(trace.components)
	if err != nil {
		return trace.faultAt(trace.typesLine, err)
	}
	latest := map[part][]uint64{}
	var codes []uint64
	err = trace.next()
	for first := trace.tick; err == nil && !cfg.over(trace.tick-first); err = trace.next() {
		for i, has := range trace.has {
			at := part{trace.entity, i}
			before := latest[at]
			if !has {
				delete(latest, at)
				continue
			}
			codes = schema.Codes(trace.values[i].Interface(), codes[:0])
			if before != nil {
				fn(change{trace.tick, trace.rate, at, owners[i], before, codes})
			}
			latest[at] = append(before[:0], codes...)
		}
	}
	if err == io.EOF {
		err = nil
	}
	return err
}

// codeOwners returns, by component, the full name of the field of each code.
func codeOwners(components []component) ([][]string, error) {
	owners := make([][]string, len(components))
	for i, c := range components {
		for j := range c.fields {
			f := &c.fields[j]
			alone := component{name: c.name, fields: c.fields[j : j+1], typ: structOf(c.name, c.fields[j:j+1])}
			schema := replication.NewSchema()
			if err := alone.register(schema); err != nil {
				return nil, blame(f.columnName(c.name), "%v", err)
			}
			for range schema.Codes(reflect.New(alone.typ).Interface(), nil) {
				owners[i] = append(owners[i], f.fullName(c.name))
			}
		}
	}
	return owners, nil
}

package receive

import (
	"github.com/arche-replicate/arche-replicate/replication/internal/archeutil"
	"github.com/arche-replicate/arche-replicate/replication/internal/schema"
	"github.com/arche-replicate/arche-replicate/replication/internal/wire"
)

// Component layouts: where a held state keeps the row of each component. All states with the same
// component set share a layout.

// A Layout is a component set and where a state has the rows of its components.
type Layout struct {
	Set     wire.ComponentSet
	offsets []int // by component: where its row begins in the words, noRow, or sharedAt less where its index is
	words   int
	rows    *archeutil.RowPool
	Shared  []int   // where the indices of shared rows are
	Coded   []Place // of the components that have rows, in order
	moving  []Place // those of them with fields that may be extrapolated
	symbols int     // rows that may differ from a baseline with this layout
	minBits int     // least bits in Packed without a baseline
}

// A Place is where states have the row of a component.
type Place struct {
	Number int // of the component
	offset int // as in Layout.offsets
	end    int // offset and words
	words  int // of the row
	own    int // how many places are in the words of a state, without interruption from this one on
	work   int // to decode the row
	Comp   *schema.Component
}

const (
	noRow    = -1
	sharedAt = -2
)

// MaxLayouts is how many component sets a client remembers at a time, so that a server can't make
// it remember more and more. A long game may use more over time: layouts that no state has any more
// make room for new ones.
const MaxLayouts = 4096

const (
	manyLayouts = MaxLayouts / 4 * 3 // from here on, unused layouts are looked for
	sweepEvery  = 64                 // calls of Frame between two searches
)

// newLayouts returns an empty table. relations has the components that are relations of Arche.
func newLayouts(s *schema.Schema, relations wire.ComponentSet) layouts {
	known := map[wire.ComponentSet]*Layout{}
	return layouts{schema: s, Rows: new(archeutil.RowPool), Relations: relations, Known: known}
}

// layouts knows the layouts of the component sets that were received.
type layouts struct {
	schema    *schema.Schema
	Rows      *archeutil.RowPool
	Relations wire.ComponentSet // the components that are relations of Arche
	Known     map[wire.ComponentSet]*Layout
}

// Of returns the layout of a set. It returns nil if there are too many layouts, and for a set with
// two relations, since Arche panics on such an entity.
func (k *layouts) Of(set wire.ComponentSet) *Layout {
	if l := k.Known[set]; l != nil {
		return l
	}
	if len(k.Known) == MaxLayouts {
		return nil
	}
	relations := 0
	for c := range set.All() {
		if k.Relations.Has(c) {
			relations++
		}
	}
	if relations > 1 {
		return nil
	}
	l := &Layout{Set: set, rows: k.Rows, offsets: make([]int, len(k.schema.Components))}
	for c := range l.offsets {
		l.offsets[c] = noRow
		if set.Has(c) {
			l.add(c, &k.schema.Components[c])
		}
	}
	countOwn(l.Coded)
	countOwn(l.moving)
	k.Known[set] = l
	return l
}

// add places the row of component c.
func (l *Layout) add(c int, comp *schema.Component) {
	width := comp.Layout.Width()
	if width > 0 {
		l.symbols++
	}
	l.minBits += comp.Layout.MinWidth()
	if comp.Words >= archeutil.SharedWords || comp.Words > 0 && width == 0 { // rows of no bits are all the same
		l.offsets[c] = sharedAt - l.words
		l.Shared = append(l.Shared, l.words)
		l.words++
	} else {
		l.offsets[c] = l.words
		l.words += comp.Words
	}
	if comp.Words > 0 {
		at := Place{Number: c, offset: l.offsets[c], words: comp.Words, work: comp.Layout.Work(), Comp: comp}
		at.end = at.offset + at.words
		l.Coded = append(l.Coded, at)
		if comp.Layout.Moves() {
			l.moving = append(l.moving, at)
		}
	}
}

// countOwn sets Place.own.
func countOwn(places []Place) {
	own := 0
	for i := len(places) - 1; i >= 0; i-- {
		if own++; places[i].offset < 0 {
			own = 0
		}
		places[i].own = own
	}
}

// symbols returns how many rows of a layout may differ from a baseline with another layout.
func (k *layouts) symbols(l, base *Layout) (n int) {
	for c := range l.Set.All() {
		if base.Set.Has(c) && k.schema.Components[c].Layout.Width() > 0 {
			n++
		}
	}
	return n
}

// bare returns the layout of a sub-entity that is on no entity: it has only the link. It returns
// nil if the schema has no sub-entities.
func (k *layouts) bare() *Layout {
	if k.schema.Link < 0 {
		return nil
	}
	var set wire.ComponentSet
	set.Add(k.schema.Link)
	return k.Of(set)
}

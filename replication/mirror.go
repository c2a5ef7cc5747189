package replication

import (
	"github.com/arche-replicate/arche-replicate/delta"
	"github.com/arche-replicate/arche-replicate/replication/internal/archeutil"
	"github.com/arche-replicate/arche-replicate/replication/internal/schema"
)

// A mirror is what the client received of a slot: the states it holds, which may serve as
// baselines. What the world shows of it is in a replica.
type mirror struct {
	held   heldStates
	newest delta.Tick // of what was received; survives despawns
	any    bool       // newest is valid
	empty  bool       // the newest state is that the slot is empty
	dirty  bool       // the world does not show the newest state yet
}

// A heldState is an entity's whole state at a tick.
type heldState struct {
	tick       delta.Tick
	generation uint16
	shape      *shape   // nil: no state here
	words      []uint32 // rows, and indices of shared ones
}

// A shape is a component set and where a state has the rows of its components.
type shape struct {
	set     delta.Set
	offsets []int // by component: where it begins in the words, or sharedAt less where its index is, or noRow
	words   int
	rows    *archeutil.RowPool
	shared  []int // where the indices of shared rows are
	symbols int   // rows that have symbols, against a baseline of this shape
}

const (
	noRow    = -1
	sharedAt = -2
)

// maxShapes bounds what a server can make a client remember of component sets.
const maxShapes = 4096

// shapes knows the shapes of the component sets seen.
type shapes struct {
	schema    *schema.Schema
	rows      *archeutil.RowPool
	relations delta.Set // the components that are relations of Arche
	known     map[delta.Set]*shape
}

// of returns the shape of a set, or nil if there are too many or no entity can have that
// set: Arche panics on two relations in one.
func (k *shapes) of(set delta.Set) *shape {
	if s := k.known[set]; s != nil {
		return s
	}
	if len(k.known) == maxShapes {
		return nil
	}
	relations := 0
	for c := set.Next(0); c >= 0; c = set.Next(c + 1) {
		if k.relations.Has(c) {
			relations++
		}
	}
	if relations > 1 {
		return nil
	}
	s := &shape{set: set, rows: k.rows, offsets: make([]int, len(k.schema.Components))}
	for c := range s.offsets {
		s.offsets[c] = noRow
		if set.Has(c) {
			s.add(c, &k.schema.Components[c])
		}
	}
	k.known[set] = s
	return s
}

// add finds a place for the rows of component c.
func (s *shape) add(c int, comp *schema.Component) {
	width := comp.Layout.Width()
	if width > 0 {
		s.symbols++
	}
	if comp.Words >= archeutil.SharedWords || comp.Words > 0 && width == 0 { // which are all the same
		s.offsets[c] = sharedAt - s.words
		s.shared = append(s.shared, s.words)
		s.words++
		return
	}
	s.offsets[c] = s.words
	s.words += comp.Words
}

// A mirrorTable finds mirrors by slot. It is made of pages so that one packet can't make
// it huge by naming a slot far out.
type mirrorTable struct {
	pages [][]mirror
	limit uint32 // slots
}

const mirrorPage = 64

// at returns the slot's mirror, or nil if there is none.
func (t *mirrorTable) at(slot uint32) *mirror {
	if i := int(slot / mirrorPage); i < len(t.pages) && t.pages[i] != nil {
		return &t.pages[i][slot%mirrorPage]
	}
	return nil
}

// add returns the slot's mirror, new if need be. The slot is below the limit.
func (t *mirrorTable) add(slot uint32) *mirror {
	i := int(slot / mirrorPage)
	if i >= len(t.pages) {
		t.pages = append(t.pages, make([][]mirror, i+1-len(t.pages))...)
	}
	if t.pages[i] == nil {
		t.pages[i] = make([]mirror, mirrorPage)
	}
	return &t.pages[i][slot%mirrorPage]
}

// bareShape is what an entity has of a facet that is not attached: nothing but the link.
func bareShape(s *schema.Schema, k *shapes) *shape {
	if s.Link < 0 {
		return nil
	}
	var set delta.Set
	set.Add(s.Link)
	return k.of(set)
}

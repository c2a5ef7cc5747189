package receive

import (
	"github.com/arche-replicate/arche-replicate/delta"
	"github.com/arche-replicate/arche-replicate/replication/internal/archeutil"
	"github.com/arche-replicate/arche-replicate/replication/internal/schema"
)

// A Replica is what the client received of a slot: the states it holds, which may serve as
// baselines. What the world shows of it is in a replica.
type Replica struct {
	Held   HeldStates
	Newest delta.Tick // of what was received; survives despawns
	Any    bool       // newest is valid
	Empty  bool       // the newest state is that the slot is empty
	Dirty  bool       // the world does not show the newest state yet
}

// A HeldState is an entity's whole state at a tick.
type HeldState struct {
	Tick       delta.Tick
	Generation uint16
	Layout     *Layout  // nil: no state here
	Words      []uint32 // rows, and indices of shared ones
}

// A Layout is a component set and where a state has the rows of its components.
type Layout struct {
	Set     delta.Set
	offsets []int // by component: where it begins in the words, or sharedAt less where its index is, or noRow
	Words   int
	rows    *archeutil.RowPool
	Shared  []int // where the indices of shared rows are
	symbols int   // rows that have symbols, against a baseline of this shape
}

const (
	noRow    = -1
	sharedAt = -2
)

// MaxLayouts bounds what a server can make a client remember of component sets.
const MaxLayouts = 4096

// layouts knows the shapes of the component sets seen.
type layouts struct {
	schema    *schema.Schema
	Rows      *archeutil.RowPool
	Relations delta.Set // the components that are relations of Arche
	Known     map[delta.Set]*Layout
}

// Of returns the shape of a set, or nil if there are too many or no entity can have that
// set: Arche panics on two relations in one.
func (k *layouts) Of(set delta.Set) *Layout {
	if s := k.Known[set]; s != nil {
		return s
	}
	if len(k.Known) == MaxLayouts {
		return nil
	}
	relations := 0
	for c := set.Next(0); c >= 0; c = set.Next(c + 1) {
		if k.Relations.Has(c) {
			relations++
		}
	}
	if relations > 1 {
		return nil
	}
	s := &Layout{Set: set, rows: k.Rows, offsets: make([]int, len(k.schema.Components))}
	for c := range s.offsets {
		s.offsets[c] = noRow
		if set.Has(c) {
			s.add(c, &k.schema.Components[c])
		}
	}
	k.Known[set] = s
	return s
}

// add finds a place for the rows of component c.
func (s *Layout) add(c int, comp *schema.Component) {
	width := comp.Layout.Width()
	if width > 0 {
		s.symbols++
	}
	if comp.Words >= archeutil.SharedWords || comp.Words > 0 && width == 0 { // which are all the same
		s.offsets[c] = sharedAt - s.Words
		s.Shared = append(s.Shared, s.Words)
		s.Words++
		return
	}
	s.offsets[c] = s.Words
	s.Words += comp.Words
}

// A ReplicaTable finds mirrors by slot. It is made of pages so that one packet can't make
// it huge by naming a slot far out.
type ReplicaTable struct {
	Pages [][]Replica
	Limit uint32 // slots
}

const ReplicaPage = 64

// At returns the slot's mirror, or nil if there is none.
func (t *ReplicaTable) At(slot uint32) *Replica {
	if i := int(slot / ReplicaPage); i < len(t.Pages) && t.Pages[i] != nil {
		return &t.Pages[i][slot%ReplicaPage]
	}
	return nil
}

// add returns the slot's mirror, new if need be. The slot is below the limit.
func (t *ReplicaTable) add(slot uint32) *Replica {
	i := int(slot / ReplicaPage)
	if i >= len(t.Pages) {
		t.Pages = append(t.Pages, make([][]Replica, i+1-len(t.Pages))...)
	}
	if t.Pages[i] == nil {
		t.Pages[i] = make([]Replica, ReplicaPage)
	}
	return &t.Pages[i][slot%ReplicaPage]
}

// bareLayout is what an entity has of a sub-entity that is not attached: nothing but the link.
func bareLayout(s *schema.Schema, k *layouts) *Layout {
	if s.Link < 0 {
		return nil
	}
	var set delta.Set
	set.Add(s.Link)
	return k.Of(set)
}

// Row returns the state's row of component c, which has n words, or nil if it is not there. It
// must not be written.
func (h *HeldState) Row(c, n int) []uint32 {
	o := h.Layout.offsets[c]
	if o >= 0 {
		return h.Words[o : o+n : o+n]
	}
	return h.sharedRow(o)
}

// sharedRow returns the row that is not among the words, by what the shape says of it.
func (h *HeldState) sharedRow(offset int) []uint32 {
	if offset == noRow {
		return nil
	}
	return h.Layout.rows.Rows[h.Words[sharedAt-offset]].Words
}

// Hold makes the state one of a shape with other words.
func (h *HeldState) Hold(sh *Layout, words []uint32) {
	for _, place := range sh.Shared {
		sh.rows.Rows[words[place]].Holders++
	}
	h.release() // now, since some may be the same
	h.Layout = sh
	h.Words = append(h.Words[:0], words...)
}

// release gives up the state's shared rows, before it becomes another one or none.
func (h *HeldState) release() {
	if h.Layout == nil {
		return
	}
	for _, place := range h.Layout.Shared {
		h.Layout.rows.Release(h.Words[place])
	}
}

// empty makes the place of a state free for another one.
func (h *HeldState) empty() {
	h.release()
	h.Layout = nil
}

// merge makes a state, if it has a row of component k, share one that has the same content. So
// that is not compared again.
func (h *HeldState) merge(k int, same uint32) {
	o := h.Layout.offsets[k]
	if o == noRow || h.Words[sharedAt-o] == same {
		return
	}
	h.Layout.rows.Rows[same].Holders++
	h.Layout.rows.Release(h.Words[sharedAt-o])
	h.Words[sharedAt-o] = same
}

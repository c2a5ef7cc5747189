package apply

import (
	"github.com/arche-replicate/arche-replicate/replication/internal/archeutil"
	"github.com/arche-replicate/arche-replicate/replication/internal/receive"
	"github.com/arche-replicate/arche-replicate/replication/internal/schema"
)

// Most replicas in an Apply are entities that moved, and keep their components. Their rows are written column by column,
// for many entities at a time: a loop over the values of a column takes a third of the time of a loop over the columns
// of a value.

// pending has rows that are to be written into components, by component. Nothing else may happen to the world before
// they are.
type pending struct {
	rows [][]schema.Written
	n    int
}

// maxPending bounds the rows that wait, so that they are in the nearest cache when they are written.
const maxPending = 256

// update makes the world show the newest state of an entity that has the same components as before. It returns false,
// and has done nothing, if the entity is any other case, which is left to applyReplica.
func (a *Applier) update(slot uint32, m *replica) bool {
	state := m.Held.Newest()
	if !m.Shown || m.Removed || m.Empty || state == nil || state.Tick != m.Newest || state.Layout != m.Layout ||
		state.Generation != m.generation || len(state.Layout.Shared) > 0 || a.View.Resources.In(int(slot)) {
		return false
	}
	if a.Schema.Link >= 0 && state.Layout.Set.Has(a.Schema.Link) {
		return false
	}
	old := m.Held.At(m.Tick)
	if old == nil || old.Layout != state.Layout || old.Generation != state.Generation ||
		!archeutil.Alive(a.View.World, m.Entity) {
		return false
	}
	for i := range state.Layout.Coded {
		if at := &state.Layout.Coded[i]; !sameWords(old.Words, state.Words, at) {
			a.writeRow(slot, m, at, state.Words[at.Offset:][:at.Words])
		}
	}
	m.Tick = state.Tick
	return true
}

// sameWords reports whether two states have the same row at a place.
func sameWords(a, b []uint32, at *receive.Place) bool {
	a, b = a[at.Offset:][:at.Words], b[at.Offset:][:at.Words]
	for i := range a {
		if a[i] != b[i] {
			return false
		}
	}
	return true
}

// writeRow writes a row that changed, or lets it wait.
func (a *Applier) writeRow(slot uint32, m *replica, at *receive.Place, row []uint32) {
	k, comp := at.Number, at.Comp
	p := a.View.World.Get(m.Entity, a.View.Components[k])
	if p == nil {
		if comp.Refers() {
			a.refer(slot, m, k, p, row)
		}
		return // the user removed it
	}
	if a.Hooks.watch(k) {
		a.Hooks.noteChange(slot, m, k, p, row, true)
	}
	if comp.Simple() {
		w := &a.pending
		w.rows[k] = append(w.rows[k], schema.Written{At: p, Row: row})
		if w.n++; w.n == maxPending {
			a.flush()
		}
		return
	}
	comp.Write(p, row)
	a.View.holdStrings(m, k, p)
	if comp.Refers() {
		a.refer(slot, m, k, p, row)
	}
}

// flush writes the rows that wait.
func (a *Applier) flush() {
	if a.pending.n == 0 {
		return
	}
	a.pending.n = 0
	for k, rows := range a.pending.rows {
		if len(rows) > 0 {
			a.Schema.Components[k].WriteRows(rows)
			clear(rows) // the world may move the values and drop the memory
			a.pending.rows[k] = rows[:0]
		}
	}
}

package apply

import (
	"unsafe"

	"github.com/arche-replicate/arche-replicate/replication/internal/schema"
)

// pending has rows that are to be written into components, by component. They are written column by column, for many
// entities at a time: a loop over the values of a column takes a third of the time of a loop over the columns of a
// value. Nothing else may happen to the world before they are.
type pending struct {
	schema *schema.Schema
	rows   [][]schema.Written
	n      int
}

// maxPending bounds the rows that wait, so that they are in the nearest cache when they are written.
const maxPending = 256

// add lets a row wait that is to be written into component k at p.
func (w *pending) add(k int, p unsafe.Pointer, row []uint32) {
	w.rows[k] = append(w.rows[k], schema.Written{At: p, Row: row})
	if w.n++; w.n == maxPending {
		w.flush()
	}
}

// flush writes the rows that wait.
func (w *pending) flush() {
	if w.n == 0 {
		return
	}
	w.n = 0
	for k, rows := range w.rows {
		if len(rows) > 0 {
			w.schema.Components[k].WriteRows(rows)
			clear(rows) // the world may move the values and drop the memory
			w.rows[k] = rows[:0]
		}
	}
}

package wire

import (
	"github.com/arche-replicate/arche-replicate/bitbuf"
	"github.com/arche-replicate/arche-replicate/delta"
)

// A Front is what a packet of Packed begins with: the front of the list of baselines, and the shift of the
// orders of residuals.
type Front struct {
	delta.Baselines
	Shift delta.Shift
}

// Write appends the front of a packet of a tick.
func (f *Front) Write(w *bitbuf.Writer, tick delta.Tick) {
	names := delta.NewNames(tick)
	names.Write(w, f.Baselines)
	f.Shift.Write(w)
}

// ReadFront reads the front of a packet, and begins the list of baselines with it.
func ReadFront(r *bitbuf.Reader, names *delta.Names) Front {
	return Front{names.Read(r, true), delta.ReadShift(r)}
}

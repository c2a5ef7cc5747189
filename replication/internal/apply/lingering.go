package apply

import (
	"github.com/arche-replicate/arche-replicate/delta"
	"github.com/arche-replicate/arche-replicate/replication/internal/receive"
)

// Lingering are entities that the server removed, and that the world still shows: an interpolation behind the newest
// states has not come to their end.
type Lingering struct {
	// MayEnd reports whether what ended in a tick may go; nil: all may.
	MayEnd func(tick delta.Tick) bool
	slots  []uint32
}

// update takes entities that may not go off the list of what the world does not show yet, and puts those back that
// may now. A slot that has another entity by then has no time for the former one.
func (l *Lingering) update(rc *receive.Receiver, view *worldView) {
	if l.MayEnd == nil {
		return
	}
	waiting := l.slots
	l.slots = l.slots[:0]
	for _, slot := range waiting {
		switch m := view.Replicas.At(slot); {
		case m == nil || m.Dirty || !m.Empty || !m.Shown: // something newer is on the list, or a reset removed it
		case !m.Any || l.MayEnd(m.Ended):
			rc.MarkDirty(slot, m.Replica)
		default:
			l.slots = append(l.slots, slot)
		}
	}
	rest := rc.Dirty[:0]
	for _, slot := range rc.Dirty {
		m := view.Replicas.At(slot)
		if m == nil || !m.Shown || !m.Empty || m.partly || view.Resources.In(int(slot)) || l.MayEnd(m.Ended) {
			rest = append(rest, slot)
			continue
		}
		m.Dirty, m.ended = false, true
		l.slots = append(l.slots, slot)
	}
	rc.Dirty = rest
}

package apply

import (
	"github.com/arche-replicate/arche-replicate/replication/internal/blend"
	"github.com/arche-replicate/arche-replicate/replication/internal/receive"
)

// lingering are the slots of entities that the server removed, and that the world still shows: an interpolation behind
// the newest states has not come to their end.
type lingering []uint32

// update takes entities that may not go off the list of what the world does not show yet, and puts those back that
// may now. Those with the marker of Withheld are ahead of what is shown, and may go at once. A slot that has another
// entity by then has no time for the former one. shown is [Applier.Shown].
func (l *lingering) update(rc *receive.Receiver, view *worldView, shown func() (blend.Time, bool)) {
	if shown == nil {
		return
	}
	now, ok := shown()
	mayEnd := func(m *replica) bool {
		return !ok || !m.Ended.After(now.Tick) || view.Withheld.Marks(view.World, m.Entity)
	}
	waiting := *l
	*l = waiting[:0]
	for _, slot := range waiting {
		switch m := view.Replicas.At(slot); {
		case m == nil || m.Dirty || !m.Empty || !m.Shown: // something newer is on the list, or a reset removed it
		case !m.Any || mayEnd(m):
			rc.MarkDirty(slot, m.Replica)
		default:
			*l = append(*l, slot)
		}
	}
	rest := rc.Dirty[:0]
	for _, slot := range rc.Dirty {
		m := view.Replicas.At(slot)
		if m == nil || !m.Shown || !m.Empty || m.partly || view.Resources.In(int(slot)) || mayEnd(m) {
			rest = append(rest, slot)
			continue
		}
		m.Dirty, m.ended = false, true
		*l = append(*l, slot)
	}
	rc.Dirty = rest
}

package ackstate

import (
	"strings"
	"testing"

	"github.com/arche-replicate/arche-replicate/delta"
	"github.com/arche-replicate/arche-replicate/replication/internal/baseline"
	"github.com/arche-replicate/arche-replicate/replication/internal/counters"
	"github.com/arche-replicate/arche-replicate/replication/internal/interest"
	"github.com/arche-replicate/arche-replicate/replication/internal/schema"
	"github.com/arche-replicate/arche-replicate/replication/internal/wire"
	"github.com/mlange-42/arche/ecs"
	"github.com/stretchr/testify/require"
)

// The life of a slot for one peer, as CONTRIBUTING.md draws it.

// A slotState is a state of that drawing.
type slotState string

const (
	absent   slotState = "absent"   // the client shows nothing of the slot, and is to show nothing
	spawned  slotState = "new"      // a full state is to be sent; the client holds none
	arriving slotState = "arriving" // a full state is in flight
	inParts  slotState = "in parts" // a full state that is larger than a packet is being sent
	held     slotState = "held"     // the client holds the present state
	changed  slotState = "changed"  // an update is to be sent
	updating slotState = "updating" // an update is in flight
	tooOld   slotState = "lapsed"   // changed, and what the client holds is too old for a baseline
	kept     slotState = "kept"     // out of view, but the client keeps showing what it holds
	gone     slotState = "gone"     // a despawn is to be sent
	ending   slotState = "ending"   // a despawn is in flight
)

// A slotLife is the life of one slot for one peer.
type slotLife struct {
	trackedPeer
	slot    int
	bit     uint64
	visible bool
	hides   bool // the peer does not see everything
	packet  uint32
	was     slotState
}

func newSlotLife() *slotLife {
	l := &slotLife{trackedPeer: *newTrackedPeer(), slot: -1, visible: true}
	shared := &interest.Shared{Snap: l.Snap}
	l.sight.Init(l, l.Snap, &schema.Schema{}, shared)
	l.Init(l.Snap, shared, &l.sight, &counters.PeerCounters{}, l)
	l.Begin(0, false, false)
	return l
}

// state returns the state, and whether the client may still show an earlier entity of the slot, or this one though it
// went out of view in the meantime.
func (l *slotLife) state() (s slotState, ends bool) {
	t := &l.Acks
	has := func(word uint64) bool { return word&l.bit != 0 }
	ends = has(t.Ended[0])
	dirty := has(l.Dirty[0])
	switch seen := has(l.sight.View.Sees(0, l.slots.Alive[0])); {
	case seen && has(l.Large.In(0)):
		return inParts, ends
	case seen && has(t.None[0]) && dirty:
		return spawned, ends
	case seen && has(t.None[0]):
		return arriving, ends
	case seen && dirty && has(t.Bare(0)):
		return tooOld, ends
	case seen && dirty:
		return changed, ends
	case seen && has(t.Behind(0)):
		return updating, ends
	case seen:
		return held, ends
	case !has(t.Shown[0]):
		return absent, ends
	case !has(l.Gone(0)):
		return kept, ends
	case dirty:
		return gone, ends
	}
	return ending, ends
}

// play plays a tick. The entity changes as the world does; then what is dirty is sent, if sends is true.
func (l *slotLife) play(change func(now delta.Tick), sends bool) {
	l.Snap.Tick++
	now := l.Snap.Tick
	l.slots.Begin(now)
	l.slots.Reclaim(now)
	change(now)
	l.slots.List()
	l.Settled.Begin(&l.Tracker)
	l.Grow()
	l.sight.Limit()
	l.Follow()
	l.NoteAllChurn()
	l.Expire()
	l.Look()
	if l.sight.View.InView == nil {
		l.MarkChanged()
	}
	l.FindLapsed(true)
	packet := l.Log.Begin(now)
	if live, dead := l.Split(0, l.Dirty[0]); sends {
		l.Log.Add(packet, 0, live, baseline.RecordState)
		l.Log.Add(packet, 0, dead, baseline.RecordDespawn)
		l.Dirty[0] &^= live | dead
		l.Acks.Shown[0] |= live
	}
	l.packet = l.Log.Commit(l.Interval)
	l.slots.Settle(now)
}

// slotEvents are the events on the arrows.
var slotEvents = map[string]func(l *slotLife){
	"spawn": func(l *slotLife) {
		l.play(func(now delta.Tick) {
			l.slot = l.slots.Add(ecs.Entity{}, now)
			l.bit = 1 << l.slot
		}, false)
	},
	"change": func(l *slotLife) { l.play(func(now delta.Tick) { l.slots.Touch(l.slot, now) }, false) },
	"end":    func(l *slotLife) { l.play(func(now delta.Tick) { l.slots.Remove(l.slot, now) }, false) },
	"replace": func(l *slotLife) { // one entity ends and another gets its slot in the same tick
		l.play(func(now delta.Tick) {
			l.slots.Remove(l.slot, now)
			if l.slots.Add(ecs.Entity{}, now) != l.slot {
				panic("another slot")
			}
		}, false)
	},
	"send": func(l *slotLife) { l.play(func(delta.Tick) {}, true) },
	"ack": func(l *slotLife) {
		l.acknowledge(l.packet)
		l.play(func(delta.Tick) {}, false)
	},
	"lose": func(l *slotLife) {
		l.Lose(l.packet)
		l.play(func(delta.Tick) {}, false)
	},
	"leave view": func(l *slotLife) { l.see(false) },
	"enter view": func(l *slotLife) { l.see(true) },
	"keep": func(l *slotLife) {
		l.sight.SetCriteria(interest.Criteria{Visible: func(ecs.Entity) bool { return l.visible }, Keep: true})
		l.play(func(delta.Tick) {}, false)
	},
	"keep no longer": func(l *slotLife) {
		l.sight.SetCriteria(interest.Criteria{Visible: func(ecs.Entity) bool { return l.visible }})
		l.play(func(delta.Tick) {}, false)
	},
	"report a missing baseline": func(l *slotLife) {
		at, ok := l.Acks.Holds(l.slot)
		if !ok {
			panic("it holds none")
		}
		l.forget(wire.MissingBaseline{Slot: uint32(l.slot), Low: uint32(at)})
		l.play(func(delta.Tick) {}, false)
	},
	"wait for a window": func(l *slotLife) {
		for range 2 * l.Snap.Opts.Window {
			l.play(func(delta.Tick) {}, false)
		}
	},
	"begin parts": func(l *slotLife) {
		l.Large.Begin(l.slot)
		state := l.Large.Of(l.slot)
		*state = LargeState{Tick: l.Snap.Tick + 1, Encoded: []byte{1}, Size: 1, Parts: make([]PartStatus, 2), Missed: 2}
		l.Acks.Shown[0] |= l.bit
		l.play(func(delta.Tick) {}, false)
		l.Dirty[0] &^= l.bit // both parts are in flight
		state.Parts = []PartStatus{PartInFlight, PartInFlight}
	},
	"ack all parts": func(l *slotLife) {
		l.acknowledge(l.packet) // the parts came in it
		l.play(func(delta.Tick) {}, false)
		for part := range uint16(2) {
			l.acknowledgePart(l.slot, &SentPacket{of: uint32(l.Large.Of(l.slot).Tick), part: part})
		}
		l.play(func(delta.Tick) {}, false)
	},
	"lose a part": func(l *slotLife) {
		l.losePart(l.slot, &SentPacket{of: uint32(l.Large.Of(l.slot).Tick)})
		l.play(func(delta.Tick) {}, false)
	},
}

func (l *slotLife) see(visible bool) {
	l.visible = visible
	if l.sight.View.Visible == nil {
		keep := l.sight.View.Keep
		l.sight.SetCriteria(interest.Criteria{Visible: func(ecs.Entity) bool { return l.visible }, Keep: keep})
	}
	l.play(func(delta.Tick) {}, false)
}

// TestTheLifeOfASlot walks every arrow of the drawing in CONTRIBUTING.md: the events of a path but the last one end in the
// first state, and the last one in the second. A star means that the client may still show what was in the slot before.
func TestTheLifeOfASlot(t *testing.T) {
	const toHeld = "spawn, send, ack"
	for _, arrow := range []struct{ path, from, to string }{
		{"spawn", "absent", "new"},
		{"spawn, leave view, enter view", "absent", "new"},
		{"spawn, end", "new", "absent"},
		{"spawn, leave view", "new", "absent"},
		{"spawn, change", "new", "new"},
		{"spawn, send", "new", "arriving"},
		{toHeld, "arriving", "held"},
		{"spawn, send, lose", "arriving", "new"},
		{"spawn, send, change", "arriving", "new"},
		{"spawn, send, end", "arriving", "gone*"},
		{"spawn, send, leave view", "arriving", "gone*"},
		{"spawn, send, replace", "arriving", "new*"},
		{"spawn, begin parts", "new", "in parts"},
		{"spawn, begin parts, ack all parts", "in parts", "held"},
		{"spawn, begin parts, lose a part", "in parts", "in parts"},
		{"spawn, begin parts, change", "in parts", "in parts"},
		{"spawn, begin parts, end", "in parts", "gone*"},
		{"spawn, begin parts, leave view", "in parts", "gone*"},
		{toHeld + ", change", "held", "changed"},
		{toHeld + ", end", "held", "gone*"},
		{toHeld + ", leave view", "held", "gone*"},
		{toHeld + ", replace", "held", "new*"},
		{toHeld + ", report a missing baseline", "held", "new"},
		{toHeld + ", change, send", "changed", "updating"},
		{toHeld + ", change, end", "changed", "gone*"},
		{toHeld + ", change, leave view", "changed", "gone*"},
		{toHeld + ", change, report a missing baseline", "changed", "new"},
		{toHeld + ", change, wait for a window", "changed", "lapsed"},
		{toHeld + ", change, wait for a window, send", "lapsed", "updating"},
		{toHeld + ", change, send, ack", "updating", "held"},
		{toHeld + ", change, send, lose", "updating", "changed"},
		{toHeld + ", change, send, change", "updating", "changed"},
		{toHeld + ", change, send, end", "updating", "gone*"},
		{toHeld + ", change, send, report a missing baseline", "updating", "new"},
		{toHeld + ", end, send", "gone*", "ending*"},
		{toHeld + ", end, spawn", "gone*", "new*"},
		{toHeld + ", leave view, enter view", "gone*", "new*"},
		{toHeld + ", end, send, ack", "ending*", "absent*"},
		{toHeld + ", end, send, lose", "ending*", "gone*"},
		{toHeld + ", end, send, spawn", "ending*", "new*"},
		{toHeld + ", end, send, ack, spawn", "absent*", "new*"},
		{toHeld + ", leave view, send, enter view", "ending*", "new*"},
		{toHeld + ", replace, send", "new*", "arriving*"},
		{toHeld + ", replace, end", "new*", "gone*"},
		{toHeld + ", replace, send, ack", "arriving*", "held"},
		{toHeld + ", replace, send, lose", "arriving*", "new*"},
		{toHeld + ", keep, leave view", "held", "kept"},
		{toHeld + ", keep, change, leave view", "changed", "kept"},
		{toHeld + ", keep, leave view, enter view", "kept", "held"},
		{toHeld + ", keep, leave view, change", "kept", "kept"},
		{toHeld + ", keep, leave view, change, enter view", "kept", "changed"},
		{toHeld + ", keep, leave view, end", "kept", "gone*"},
		{toHeld + ", keep, leave view, keep no longer", "kept", "gone*"},
	} {
		t.Run(arrow.path, func(t *testing.T) {
			l := newSlotLife()
			name := func() string {
				if l.slot < 0 {
					return string(absent)
				}
				s, ends := l.state()
				if ends {
					s += "*"
				}
				return string(s)
			}
			events := strings.Split(arrow.path, ", ")
			for i, event := range events {
				if i == len(events)-1 {
					require.Equal(t, arrow.from, name(), "before %q", event)
				}
				slotEvents[event](l)
			}
			require.Equal(t, arrow.to, name())
		})
	}
}

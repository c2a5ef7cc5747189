package snapshot

import "github.com/arche-replicate/arche-replicate/replication/internal/bitset"

// The urgency of a slot is the time for which it has waited, times its weight: every tick in which
// others are sent and it is not adds its weight.

// UrgencyBits is the number of bits of an urgency. They suffice for a wait of 2,047 ticks at weight 1. Longer waits
// count the same.
const UrgencyBits = 15

// Urgency is the urgency of a peer's dirty slots. The numbers are bit-sliced: a plane has the same bit of all of them,
// 64 in a word. So 64 weights are added with a few operations per bit, and the largest numbers are found without
// sorting, by looking at one plane after the other from the highest down. Both are from D. Rinfret, P. O'Neil and
// E. O'Neil, "Bit-Sliced Index Arithmetic", 2001.
type Urgency struct {
	Planes  []uint64   // one plane after the other, from the lowest bit up; nil: there is no room for any slot
	Waiting bitset.Set // slots that have been dirty since weights were last added; what planes have of others is void
	First   int32      // of equally urgent slots, those from this one on come first

	Least, Used uint8 // planes below Least and from Used on are not in use
}

// Grow makes room for slots below n.
func (u *Urgency) Grow(n int) {
	u.Waiting = u.Waiting.Grown(n)
	blocks, old := len(u.Waiting), u.room()
	if blocks <= old {
		return
	}
	if old == 0 {
		u.Least = UrgencyBits
	}
	room := blocks + (blocks+15)/16 // spares copying at every growth
	planes := make([]uint64, UrgencyBits*room)
	for i := range UrgencyBits {
		copy(planes[i*room:], u.Planes[i*old:][:old])
	}
	u.Planes = planes
}

// room returns the number of blocks for which planes have room.
func (u *Urgency) room() int { return len(u.Planes) / UrgencyBits }

// Plane returns a bit of the urgencies of all slots, by block.
func (u *Urgency) Plane(i int) bitset.Set { return u.Planes[i*u.room():][:len(u.Waiting)] }

// Wait ends a tick: slots that are clean no longer wait. If no other slot has the highest bit, it is no longer in use.
func (u *Urgency) Wait(dirty bitset.Set) {
	highest, plane := uint64(0), u.Plane(max(int(u.Used)-1, 0))
	for b := range plane {
		u.Waiting[b] &= dirty[b]
		highest |= plane[b] & u.Waiting[b]
	}
	if highest == 0 {
		clear(plane)
		u.Used -= min(u.Used, 1)
	}
}

// Gain adds the weights of the dirty slots of a block, twice for the slots in double. It goes through all planes in use
// without branches that depend on their bits, which would be predicted badly.
func (u *Urgency) Gain(b int, dirty uint64, w *SlicedWeights, double uint64) {
	waited := u.Waiting[b]
	if u.Waiting[b] = dirty; dirty == 0 {
		return
	}
	u.Least = min(u.Least, w.first)
	u.Used = max(u.Used, u.Least, w.end+1)
	planes, room := u.Planes, u.room()
	at := int(u.Least)*room + b
	carry, below := uint64(0), uint64(0)
	for _, weight := range w.Planes[u.Least:u.Used] {
		term := (weight&^double | below&double) & dirty
		below = weight
		bits := planes[at] & waited
		sum := bits ^ term
		planes[at], carry = sum^carry, bits&term|carry&sum
		at += room
	}
	switch {
	case carry == 0:
	case u.Used < UrgencyBits:
		planes[at] = carry
		u.Used++
	default: // overflow: the largest number
		for ; b < len(planes); b += room {
			planes[b] |= carry
		}
		u.Least = 0
	}
}

//go:build js

package main

import (
	"cmp"
	"fmt"
	"maps"
	"slices"
	"time"
)

// title returns the name of a ship for people.
func (s *ship) title() string { return cmp.Or(s.name, fmt.Sprint("Bot ", s.number)) }

// leaders is how many ships the page lists.
const leaders = 5

// ownStatus describes the ship in the middle.
func (v *view) ownStatus(number int, name string, now time.Time) object {
	own := &v.own
	respawn := 0.0
	if number >= 0 && !own.alive && !v.diedAt.IsZero() {
		respawn = max(0, respawnSeconds-now.Sub(v.diedAt).Seconds())
	}
	o := newObject()
	o.integer("ship", number)
	o.text("name", name)
	o.integer("ammo", own.ammo)
	o.integer("hull", own.hull)
	o.integer("hullMax", 10)
	o.integer("shield", own.shield)
	o.integer("shieldMax", 3)
	o.integer("safe", own.safe)
	o.number("x", own.x)
	o.number("y", own.y)
	o.number("angle", own.angle)
	o.truth("alive", own.alive)
	o.number("respawnIn", respawn)
	o.integer("kills", int(own.score.Kills))
	o.integer("deaths", int(own.score.Deaths))
	return o
}

// ranking returns the ships, the best first.
func (v *view) ranking() []*ship {
	return slices.SortedFunc(maps.Values(v.ships), func(a, b *ship) int {
		return cmp.Or(cmp.Compare(b.score.Kills, a.score.Kills), cmp.Compare(a.score.Deaths, b.score.Deaths),
			cmp.Compare(a.number, b.number))
	})
}

func (v *view) matchStatus(own int) object {
	ranking := v.ranking()
	best := newList()
	for _, s := range ranking[:min(leaders, len(ranking))] {
		o := newObject()
		o.text("name", s.title())
		o.integer("kills", int(s.score.Kills))
		o.integer("deaths", int(s.score.Deaths))
		o.truth("own", s.number == own)
		o.truth("player", s.name != "")
		best.add(o.js)
	}
	o := newObject()
	o.text("phase", v.match.Phase.String())
	o.integer("clock", int(v.match.TimeLeft))
	o.integer("players", v.players)
	o.list("leaders", best)
	return o
}

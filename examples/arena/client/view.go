//go:build js

package main

import (
	"cmp"
	"fmt"
	"maps"
	"math"
	"slices"
	"syscall/js"
	"time"
	"unsafe"

	"github.com/mlange-42/arche/ecs"
	"github.com/mlange-42/arche/generic"

	"github.com/arche-replicate/arche-replicate/examples/arena/game"
	"github.com/arche-replicate/arche-replicate/replication/predict"
)

// Kinds of rows, and whose they are.
const (
	kindShip float32 = iota
	kindBullet
	kindPowerUp
	kindWreck
	kindGhost
)

const (
	teamBot float32 = iota
	teamPlayer
	teamYou
)

// rowLength is how many numbers a row has: kind, team, x, y, angle, and one more that depends on the
// kind.
const rowLength = 6

const (
	respawnSeconds = 2.0
	leaders        = 5
	mostEvents     = 256 // that wait for the page
)

// view is everything that is shown of the world.
type view struct {
	rows   []float32
	array  js.Value // Uint8Array over what the page has of rows
	answer js.Value // of frame

	entities int
	ships    map[int]*ship // by Ship.Number
	frame    int
	own      ship
	diedAt   time.Time
	match    game.Match
	players  int
	events   []any
	errors   struct { // of ghosts, in the latest frame
		sum float64
		n   int
	}

	place   generic.Map2[game.Position, drawnPosition]
	heading generic.Map2[game.Heading, drawnHeading]
	ship    generic.Map[game.Ship]
	bullets *generic.Filter1[game.Bullet]
	world   *ecs.World
	powerUp generic.Map[game.PowerUp]
	status  generic.Map[game.Match]
	ahead   generic.Map[predict.Predicted]
	badge   generic.Map[game.Callsign]
	stock   generic.Map3[game.Hull, game.Ammo, game.Score]
	shield  generic.Map[game.Shield]
	safe    generic.Map[game.Protection]
}

// ship is one as it is shown.
type ship struct {
	number       int
	name         string // of its player; empty for a bot
	x, y, angle  float64
	alive        bool
	hull, shield int
	safe         int // seconds of protection left
	ammo         int
	score        game.Score
	frame        int // in which it was there
}

func newView(w *ecs.World) *view {
	return &view{
		ships:   map[int]*ship{},
		place:   generic.NewMap2[game.Position, drawnPosition](w),
		heading: generic.NewMap2[game.Heading, drawnHeading](w),
		ship:    generic.NewMap[game.Ship](w),
		bullets: generic.NewFilter1[game.Bullet](),
		world:   w,
		powerUp: generic.NewMap[game.PowerUp](w),
		status:  generic.NewMap[game.Match](w),
		ahead:   generic.NewMap[predict.Predicted](w),
		badge:   generic.NewMap[game.Callsign](w),
		stock:   generic.NewMap3[game.Hull, game.Ammo, game.Score](w),
		shield:  generic.NewMap[game.Shield](w),
		safe:    generic.NewMap[game.Protection](w),
	}
}

// draw makes the rows.
func (v *view) draw(c *client) {
	v.rows, v.entities = v.rows[:0], 0
	v.frame++
	v.players = 0
	for _, e := range c.Client.Entities() {
		v.entities++
		v.drawEntity(c, e)
	}
	for q := v.bullets.Query(v.world); q.Next(); { // also those that the server does not know yet
		if at, angle, ok := v.lookAt(c, q.Entity()); ok {
			v.add(kindBullet, v.team(c, int(q.Get().Owner)), at, angle, 0)
		}
	}
	maps.DeleteFunc(v.ships, func(_ int, s *ship) bool { return s.frame != v.frame })
	if own := v.ships[c.Ship]; own != nil {
		if v.own.alive && !own.alive {
			v.diedAt = time.Now()
		}
		v.own = *own
	} else {
		v.own.alive = false
	}
	v.drawGhosts(c)
}

// lookAt returns where an entity is drawn: where it is predicted to be, or as a moment ago.
func (v *view) lookAt(c *client, e ecs.Entity) (at game.Position, angle float32, ok bool) {
	newest, drawn := v.place.Get(e)
	ahead := v.ahead.Get(e) != nil
	if newest == nil || !ahead && !c.newest && !c.Shown.Shown(e) {
		return at, 0, false
	}
	at = *newest
	if drawn != nil && !ahead && !c.newest {
		at = game.Position(*drawn)
	}
	if newest, drawn := v.heading.Get(e); newest != nil {
		angle = newest.Angle
		if drawn != nil && !ahead && !c.newest {
			angle = drawn.Angle
		}
	}
	return at, angle, true
}

func (v *view) drawEntity(c *client, e ecs.Entity) {
	if match := v.status.Get(e); match != nil {
		v.match = *match
		return
	}
	ship, powerUp := v.ship.Get(e), v.powerUp.Get(e)
	if ship == nil && powerUp == nil {
		return
	}
	at, angle, ok := v.lookAt(c, e)
	switch {
	case !ok:
	case ship != nil:
		v.drawShip(c, e, at, angle)
	case powerUp.Kind != game.NoPowerUp:
		v.add(kindPowerUp, teamBot, at, 0, float32(powerUp.Kind))
	}
}

// drawShip draws a ship or its wreck.
func (v *view) drawShip(c *client, e ecs.Entity, at game.Position, angle float32) {
	data := v.ship.Get(e)
	number := int(data.Number)
	s, known := v.ships[number]
	if !known {
		s = &ship{number: number, alive: data.Alive}
		v.ships[number] = s
	}
	s.frame, s.x, s.y, s.angle = v.frame, float64(at.X), float64(at.Y), float64(angle)
	s.name = ""
	if badge := v.badge.Get(e); badge != nil {
		s.name = badge.Name
		v.players++
	}
	if hull, ammo, score := v.stock.Get(e); hull != nil && ammo != nil && score != nil {
		s.hull, s.ammo, s.score = hull.Points, int(ammo.Rounds), *score
	}
	s.shield = 0
	if shield := v.shield.Get(e); shield != nil {
		s.shield = int(shield.Strength)
	}
	s.safe = 0
	if safe := v.safe.Get(e); safe != nil {
		s.safe = int(safe.Left)
	}
	if s.alive != data.Alive {
		kind := "kill"
		if data.Alive {
			kind = "respawn"
		}
		v.event(kind, s, number == c.Ship, false)
		s.alive = data.Alive
	}
	kind := kindShip
	if !s.alive {
		kind = kindWreck
	}
	v.add(kind, v.team(c, number), at, float32(s.angle), float32(s.safe))
}

// drawGhosts draws where the server has ships.
func (v *view) drawGhosts(c *client) {
	v.errors.sum, v.errors.n = 0, 0
	for _, g := range c.ghosts.ships {
		off := 0.0
		if s := v.ships[g.number]; s != nil {
			off = math.Hypot(float64(g.x)-s.x, float64(g.y)-s.y)
			v.errors.sum += off
			v.errors.n++
		}
		v.add(kindGhost, v.team(c, g.number), game.Position{X: g.x, Y: g.y}, g.angle, float32(off))
	}
}

func (v *view) add(kind, team float32, at game.Position, angle, extra float32) {
	v.rows = append(v.rows, kind, team, at.X, at.Y, angle, extra)
}

// team returns whose a ship is.
func (v *view) team(c *client, number int) float32 {
	if number == c.Ship {
		return teamYou
	}
	if s := v.ships[number]; s != nil && s.name != "" {
		return teamPlayer
	}
	return teamBot
}

// result copies the rows to the page.
func (v *view) result() js.Value {
	if n := cap(v.rows); v.answer.IsUndefined() || v.array.Length() < 4*len(v.rows) {
		buffer := js.Global().Get("ArrayBuffer").New(4 * max(n, 1024*rowLength))
		v.array = js.Global().Get("Uint8Array").New(buffer)
		v.answer = js.Global().Get("Object").New()
		v.answer.Set("rows", js.Global().Get("Float32Array").New(buffer))
	}
	if len(v.rows) > 0 {
		js.CopyBytesToJS(v.array, unsafe.Slice((*byte)(unsafe.Pointer(&v.rows[0])), 4*len(v.rows)))
	}
	v.answer.Set("n", len(v.rows)/rowLength)
	return v.answer
}

// hit makes an event of a hit that the server announced.
func (v *view) hit(h game.Hit, own int) {
	if s := v.ships[int(h.Victim)]; s != nil {
		v.event("hit", s, int(h.Victim) == own, int(h.Shooter) == own)
	}
}

func (v *view) event(kind string, s *ship, own, mine bool) {
	if len(v.events) < mostEvents {
		o := newObject()
		o.text("kind", kind)
		o.number("x", s.x)
		o.number("y", s.y)
		o.truth("own", own)
		o.truth("mine", mine)
		v.events = append(v.events, o.js)
	}
}

// takeEvents returns what happened since the last call.
func (v *view) takeEvents() []any {
	events := v.events
	v.events = nil
	return events
}

// title returns the name of a ship for people.
func (s *ship) title() string { return cmp.Or(s.name, fmt.Sprint("Bot ", s.number)) }

func (v *view) ownStatus(c *client, now time.Time) object {
	own := &v.own
	respawn := 0.0
	if c.Ship >= 0 && !own.alive && !v.diedAt.IsZero() {
		respawn = max(0, respawnSeconds-now.Sub(v.diedAt).Seconds())
	}
	o := newObject()
	o.integer("ship", c.Ship)
	o.text("name", c.Name)
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

func (v *view) matchStatus(own int) object {
	ranking := make([]*ship, 0, len(v.ships))
	for _, s := range v.ships {
		ranking = append(ranking, s)
	}
	slices.SortFunc(ranking, func(a, b *ship) int {
		return cmp.Or(cmp.Compare(b.score.Kills, a.score.Kills), cmp.Compare(a.score.Deaths, b.score.Deaths),
			cmp.Compare(a.number, b.number))
	})
	best := js.Global().Get("Array").New()
	for i, s := range ranking[:min(leaders, len(ranking))] {
		o := newObject()
		o.text("name", s.title())
		o.integer("kills", int(s.score.Kills))
		o.integer("deaths", int(s.score.Deaths))
		o.truth("own", s.number == own)
		o.truth("player", s.name != "")
		best.SetIndex(i, o.js)
	}
	o := newObject()
	o.text("phase", v.match.Phase.String())
	o.integer("clock", int(v.match.TimeLeft))
	o.integer("players", v.players)
	o.object("leaders", object{best})
	return o
}

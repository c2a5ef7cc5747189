//go:build js

package main

import (
	"maps"
	"math"
	"syscall/js"
	"time"
	"unsafe"

	"github.com/mlange-42/arche/ecs"
	"github.com/mlange-42/arche/generic"

	"github.com/arche-replicate/arche-replicate/examples/arena/game"
	"github.com/arche-replicate/arche-replicate/replication"
	"github.com/arche-replicate/arche-replicate/replication/interpolation"
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
	mostEvents     = 256 // that wait for the page
)

// What is drawn between the states that arrive. The components of the game keep the newest state, for
// a page that shows what the game is like without interpolation.
type (
	drawnPosition game.Position
	drawnHeading  game.Heading
)

// view is everything that is shown of the world.
type view struct {
	client *replication.Client
	shown  *interpolation.Interpolation
	follow int  // Ship.Number of the ship that is in the middle, or -1
	newest bool // without interpolation

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
	id           replication.NetID
	name         string // of its player; empty for a bot
	x, y, angle  float64
	alive        bool
	hull, shield int
	safe         int // seconds of protection left
	ammo         int
	score        game.Score
	frame        int // in which it was there
}

func newView(w *ecs.World, client *replication.Client, shown *interpolation.Interpolation) *view {
	interpolation.Into[game.Position, drawnPosition](shown)
	interpolation.Into[game.Heading, drawnHeading](shown)
	return &view{
		client: client, shown: shown, follow: -1,
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

// draw makes the rows, with a ship in the middle.
func (v *view) draw(follow int, newest bool, ghosts []ghost) {
	v.follow, v.newest = follow, newest
	v.rows, v.entities = v.rows[:0], 0
	v.frame++
	v.players = 0
	for _, e := range v.client.Entities() {
		v.entities++
		v.drawEntity(e)
	}
	for q := v.bullets.Query(v.world); q.Next(); { // also those that the server does not know yet
		if at, angle, ok := v.lookAt(q.Entity()); ok {
			v.add(kindBullet, v.team(int(q.Get().Owner)), at, angle, 0)
		}
	}
	maps.DeleteFunc(v.ships, func(_ int, s *ship) bool { return s.frame != v.frame })
	if own := v.ships[v.follow]; own != nil {
		if v.own.alive && !own.alive {
			v.diedAt = time.Now()
		}
		v.own = *own
	} else {
		v.own.alive = false
	}
	v.drawGhosts(ghosts)
}

// forget forgets what was drawn, so that nothing seems to happen from there to another moment.
func (v *view) forget() {
	clear(v.ships)
	v.events = nil
}

// lookAt returns where an entity is drawn: where it is predicted to be, or as a moment ago.
func (v *view) lookAt(e ecs.Entity) (at game.Position, angle float32, ok bool) {
	newest, drawn := v.place.Get(e)
	ahead := v.ahead.Get(e) != nil
	if newest == nil || !ahead && !v.newest && !v.shown.Shown(e) {
		return at, 0, false
	}
	at = *newest
	if drawn != nil && !ahead && !v.newest {
		at = game.Position(*drawn)
	}
	if newest, drawn := v.heading.Get(e); newest != nil {
		angle = newest.Angle
		if drawn != nil && !ahead && !v.newest {
			angle = drawn.Angle
		}
	}
	return at, angle, true
}

func (v *view) drawEntity(e ecs.Entity) {
	if match := v.status.Get(e); match != nil {
		v.match = *match
		return
	}
	ship, powerUp := v.ship.Get(e), v.powerUp.Get(e)
	if ship == nil && powerUp == nil {
		return
	}
	at, angle, ok := v.lookAt(e)
	switch {
	case !ok:
	case ship != nil:
		v.drawShip(e, at, angle)
	case powerUp.Kind != game.NoPowerUp:
		v.add(kindPowerUp, teamBot, at, 0, float32(powerUp.Kind))
	}
}

// drawShip draws a ship or its wreck.
func (v *view) drawShip(e ecs.Entity, at game.Position, angle float32) {
	data := v.ship.Get(e)
	number := int(data.Number)
	s, known := v.ships[number]
	if !known {
		s = &ship{number: number, alive: data.Alive}
		v.ships[number] = s
	}
	s.id, _ = v.client.NetID(e)
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
		v.event(kind, s, number == v.follow, false)
		s.alive = data.Alive
	}
	kind := kindShip
	if !s.alive {
		kind = kindWreck
	}
	v.add(kind, v.team(number), at, float32(s.angle), float32(s.safe))
}

// drawGhosts draws where the server has ships.
func (v *view) drawGhosts(ghosts []ghost) {
	v.errors.sum, v.errors.n = 0, 0
	for _, g := range ghosts {
		off := 0.0
		if s := v.ships[g.number]; s != nil {
			off = math.Hypot(float64(g.x)-s.x, float64(g.y)-s.y)
			v.errors.sum += off
			v.errors.n++
		}
		v.add(kindGhost, v.team(g.number), game.Position{X: g.x, Y: g.y}, g.angle, float32(off))
	}
}

func (v *view) add(kind, team float32, at game.Position, angle, extra float32) {
	v.rows = append(v.rows, kind, team, at.X, at.Y, angle, extra)
}

// team returns whose a ship is.
func (v *view) team(number int) float32 {
	if number == v.follow {
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

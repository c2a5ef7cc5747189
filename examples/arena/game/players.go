package game

import (
	"encoding/binary"
	"math"

	"github.com/mlange-42/arche/ecs"

	"github.com/arche-replicate/arche-replicate/replication"
)

// player is the player of a ship, if it is not a bot of the server.
type player struct {
	present bool
	name    string            // keeps the string alive, which Arche's memory does not
	peer    *replication.Peer // nil: there is no client
	safe    float64           // seconds that are left of the protection
	fired   bool              // since the ship has come
}

// Join adds a ship for a player and returns its number, or false if there are too many ships.
func (g *Game) Join(name string, peer *replication.Peer) (number int, ok bool) {
	for number = 0; number < len(g.ships); number++ {
		if g.ships[number].IsZero() {
			break
		}
	}
	if number == maxShips {
		return 0, false
	}
	g.launch(number)
	g.players[number] = player{present: true, name: name, peer: peer}
	g.badge.Assign(g.ships[number], &Callsign{Name: name})
	g.protect(number)
	return number, true
}

// protectedTime is for how many seconds a player's ship takes no harm once it is there, unless it fires.
const protectedTime = 3.0

// protect gives the ship of a player who begins, maybe again, what bots lack.
func (g *Game) protect(number int) {
	p, e := &g.players[number], g.ships[number]
	p.safe, p.fired = protectedTime, false
	hull, _, _ := g.stock.Get(e)
	hull.Points = fullHull
	g.safe.Assign(e, &Protection{Left: protectedTime})
}

// endProtection counts down, and ends the protection of players who fired.
func (g *Game) endProtection() {
	for number := range g.players {
		p := &g.players[number]
		if p.safe <= 0 {
			continue
		}
		p.safe -= g.dt
		if p.fired {
			p.safe = 0
		}
		if p.safe > 0 {
			g.safe.Get(g.ships[number]).Left = uint8(math.Ceil(p.safe))
		} else {
			g.safe.Remove(g.ships[number])
		}
	}
}

// Leave takes a player's ship out of the arena.
func (g *Game) Leave(number int) {
	g.World.RemoveEntity(g.ships[number])
	g.ships[number], g.radar.ships[number], g.players[number] = ecs.Entity{}, blip{}, player{}
}

// FillUp launches or removes a bot if there are not as many ships, those of players included. It is
// for matches in which players come and go; call it before Step.
func (g *Game) FillUp(ships int) {
	number, free, present := -1, len(g.ships), 0 // the last bot, and the first free number
	for i, e := range g.ships {
		switch {
		case e.IsZero():
			free = min(free, i)
			continue
		case !g.players[i].present:
			number = i
		}
		present++
	}
	switch {
	case present < ships && free < maxShips:
		g.launch(free)
	case present > ships && number >= 0:
		g.Leave(number)
	}
}

// AppendShips appends where living ships are to dst, for those who compare what they are shown with it: the tick, and
// for each ship its number, its position and its heading, of 4 bytes each, little-endian.
func (g *Game) AppendShips(dst []byte, tick uint32) []byte {
	put := func(x uint32) { dst = binary.LittleEndian.AppendUint32(dst, x) }
	put(tick)
	for number, e := range g.ships {
		if e.IsZero() {
			continue
		}
		if pos, heading, _, ship := g.body.Get(e); ship.Alive {
			put(uint32(number))
			put(math.Float32bits(pos.X))
			put(math.Float32bits(pos.Y))
			put(math.Float32bits(heading.Angle))
		}
	}
	return dst
}

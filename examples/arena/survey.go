package main

import (
	"cmp"
	"fmt"
	"slices"

	"github.com/mlange-42/arche/ecs"
	"github.com/mlange-42/arche/generic"

	"github.com/arche-replicate/arche-replicate/examples/arena/game"
)

// survey is everything visible in a world, the server's or a client's: an ordinary system that does
// not depend on where the entities come from.
type survey struct {
	match  game.Match
	ships  []sight
	shots  []game.Position
	crates []game.Position // power-ups that are not taken yet
}

// sight is a ship as it is shown.
type sight struct {
	number  int
	at      game.Position
	heading float64
	alive   bool
	name    string // of the player; empty for a bot of the server
	score   game.Score
}

// look surveys a world.
func look(w *ecs.World) *survey {
	s := &survey{}
	heading, player := generic.NewMap[game.Heading](w), generic.NewMap[game.Callsign](w)
	score := generic.NewMap[game.Score](w)

	ships := generic.NewFilter2[game.Position, game.Ship]().Query(w)
	for ships.Next() {
		at, ship := ships.Get()
		seen := sight{number: int(ship.Number), at: *at, alive: ship.Alive}
		e := ships.Entity()
		if h := heading.Get(e); h != nil {
			seen.heading = float64(h.Angle)
		}
		if p := player.Get(e); p != nil {
			seen.name = p.Name
		}
		if sc := score.Get(e); sc != nil {
			seen.score = *sc
		}
		s.ships = append(s.ships, seen)
	}
	shots := generic.NewFilter2[game.Position, game.Bullet]().Query(w)
	for shots.Next() {
		at, _ := shots.Get()
		s.shots = append(s.shots, *at)
	}
	crates := generic.NewFilter2[game.Position, game.PowerUp]().Query(w)
	for crates.Next() {
		if at, powerUp := crates.Get(); powerUp.Kind != game.NoPowerUp {
			s.crates = append(s.crates, *at)
		}
	}
	matches := generic.NewFilter1[game.Match]().Query(w)
	for matches.Next() {
		s.match = *matches.Get()
	}
	return s
}

// title returns the name of a ship for people.
func (s *sight) title() string {
	return cmp.Or(s.name, fmt.Sprint("Bot ", s.number))
}

// leader returns the ship with most kills, or "" if there are no kills.
func (s *survey) leader() (title string, kills int) {
	if s.match.Kills == 0 {
		return "", 0
	}
	title = fmt.Sprint("ship ", s.match.Leader) // it may have left
	for _, ship := range s.ships {
		if ship.number == int(s.match.Leader) {
			title = ship.title()
		}
	}
	return title, int(s.match.Kills)
}

// ranking returns the ships by their score in this round, the best first.
func (s *survey) ranking() []sight {
	return slices.SortedFunc(slices.Values(s.ships), func(a, b sight) int {
		return cmp.Or(
			cmp.Compare(b.score.Kills, a.score.Kills),
			cmp.Compare(a.score.Deaths, b.score.Deaths),
			cmp.Compare(a.number, b.number))
	})
}

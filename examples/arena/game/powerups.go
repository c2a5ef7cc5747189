package game

import "github.com/mlange-42/arche/ecs"

const (
	powerUpRadius  = 8.0
	powerUpVanish  = 0.5 // seconds for which a taken one is still visible
	shipsPerCrate  = 10  // one power-up for every so many ships
	fewestPowerUps = 3
)

// dropPowerUps keeps the number of power-ups, taken ones included.
func (g *Game) dropPowerUps() {
	query := g.powerUps.Query(&g.World)
	present := query.Count()
	query.Close()
	for ; present < max(fewestPowerUps, len(g.ships)/shipsPerCrate); present++ {
		e := g.newPowerUp.New()
		pos, powerUp, _ := g.newPowerUp.Get(e)
		pos.set(g.somewhere())
		powerUp.Kind = HullPlus1 + Kind(g.rng.IntN(3))
	}
}

// findCrates collects the positions of power-ups, once for all bots.
func (g *Game) findCrates() {
	g.radar.crates = g.radar.crates[:0]
	query := g.powerUps.Query(&g.World)
	for query.Next() {
		if pos, powerUp := query.Get(); powerUp.Kind != NoPowerUp {
			g.radar.crates = append(g.radar.crates, crate{pos.vec(), powerUp.Kind})
		}
	}
}

// pickUp gives every power-up to the first living ship that touches it.
func (g *Game) pickUp() {
	var taken []ecs.Entity // the world is locked while a query is open
	query := g.powerUps.Query(&g.World)
	for query.Next() {
		pos, powerUp := query.Get()
		if powerUp.Kind == NoPowerUp {
			continue
		}
		for number, ship := range g.radar.ships {
			if ship.alive && ship.at.sub(pos.vec()).length() < shipRadius+powerUpRadius {
				g.use(powerUp.Kind, g.ships[number])
				powerUp.Kind = NoPowerUp
				taken = append(taken, query.Entity())
				break
			}
		}
	}
	for _, e := range taken {
		g.fuse.Assign(e, &Fuse{powerUpVanish})
	}
}

// use applies a power-up to a ship.
func (g *Game) use(kind Kind, e ecs.Entity) {
	hull, ammo, _ := g.stock.Get(e)
	switch kind {
	case HullPlus1:
		hull.Points = min(hull.Points+1, fullHull)
	case HullPlus3:
		hull.Points = min(hull.Points+3, fullHull)
	case AmmoPlus1:
		ammo.Rounds = min(ammo.Rounds+magazine, fullAmmo)
	}
	g.Tally.Pickups++
}

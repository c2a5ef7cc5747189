package game

import (
	"math"

	"github.com/mlange-42/arche/ecs"
)

// phaseSeconds is how long each phase of a round takes.
var phaseSeconds = [...]float64{Warmup: 1.5, Fight: 15, Over: 2}

const longestPhase = 60 // the range of Match.TimeLeft

// Restart begins the next round in the next step.
func (g *Game) Restart() { g.setPhase(Over); g.clock = 0 }

// Match returns the state of the round.
func (g *Game) Match() Match { return *g.status.Get(g.match) }

// Pause shows clients that nothing moves, until it is called again.
func (g *Game) Pause(on bool) { g.status.Get(g.match).Paused = on }

// startMatch makes the one entity with the state of the match.
func (g *Game) startMatch() {
	g.match = g.newMatch.New()
	g.setPhase(Warmup)
}

// setPhase begins a phase of a round.
func (g *Game) setPhase(phase Phase) {
	g.clock = phaseSeconds[phase]
	if phase == Fight && g.FightSeconds > 0 {
		g.clock = min(g.FightSeconds, longestPhase)
	}
	match := g.status.Get(g.match)
	match.Phase = phase
	match.TimeLeft = uint8(math.Ceil(g.clock))
}

// keepTime moves the match from phase to phase, and to the next round.
func (g *Game) keepTime() {
	g.clock -= g.dt
	match := g.status.Get(g.match)
	match.TimeLeft = uint8(math.Ceil(max(0, g.clock)))
	if g.clock > 0 {
		return
	}
	if match.Phase != Over {
		g.setPhase(match.Phase + 1)
		return
	}
	g.setPhase(Warmup)
	match.Leader, match.Kills = 0, 0
	for _, e := range g.ships {
		if e.IsZero() {
			continue
		}
		_, _, score := g.stock.Get(e)
		*score = Score{}
		g.raiseShield(e)
	}
	g.Tally.Rounds++
}

// credit counts a kill, unless the shooter has left.
func (g *Game) credit(shooter ecs.Entity) {
	if shooter.IsZero() {
		return
	}
	_, _, score := g.stock.Get(shooter)
	score.Kills = min(score.Kills+1, mostCounted)
	if match := g.status.Get(g.match); score.Kills > match.Kills {
		_, _, _, ship := g.body.Get(shooter)
		match.Leader, match.Kills = ship.Number, score.Kills
	}
}

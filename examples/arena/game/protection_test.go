package game

import (
	"testing"

	"github.com/stretchr/testify/require"
)

// A player who does nothing yet has time to look around.
func TestBotsLeaveNewcomersAlone(t *testing.T) {
	deaths, lives := 0, 0.0 // seconds
	for seed := range uint64(5) {
		h := alone(seed, 99, 60)
		h.Game.FightSeconds = longestPhase
		h.run(2 * 60)
		number, ok := h.Game.Join("Newcomer", nil)
		require.True(t, ok)
		for range 30 * 60 {
			h.run(1)
			if h.Game.radar.ships[number].alive {
				lives += h.Game.dt
			}
		}
		_, _, score := h.Game.stock.Get(h.Game.ships[number])
		deaths += int(score.Deaths)
	}
	t.Logf("%d deaths in %.0f s", deaths, lives)
	require.Less(t, deaths, 10, "one in 15 seconds: bots miss each other")
}

func TestProtectionEnds(t *testing.T) {
	for _, fires := range []bool{false, true} {
		h := alone(1, 10, 60)
		g := h.Game
		h.run(2 * 60) // the warm-up is over
		number, _ := g.Join("Newcomer", nil)
		protected := func() bool { return g.safe.Get(g.ships[number]) != nil }
		shoot := func() {
			hits := g.Tally.Hits
			g.sweep()
			g.strikeAll([]strike{{victim: number, shooter: 0}})
			require.Equal(t, !protected(), g.Tally.Hits > hits, "it is hit")
		}
		hull, _, _ := g.stock.Get(g.ships[number])
		require.Equal(t, fullHull, hull.Points)
		require.EqualValues(t, 3, g.safe.Get(g.ships[number]).Left)
		shoot()
		h.run(60 + 1)
		require.EqualValues(t, 2, g.safe.Get(g.ships[number]).Left)
		g.helm.Get(g.ships[number]).Fire = fires
		h.run(2)
		g.helm.Get(g.ships[number]).Fire = false
		require.Equal(t, !fires, protected())
		require.Equal(t, !fires, g.radar.ships[number].peaceful)
		shoot()
		h.run(2 * 60)
		require.False(t, protected())
		shoot()

		// Again after each death.
		_, _, _, ship := g.body.Get(g.ships[number])
		for ship.Alive {
			g.hit(g.ships[number], g.ships[0])
			_, _, _, ship = g.body.Get(g.ships[number])
		}
		h.run(respawnAfter*60 + 2)
		require.True(t, protected())
		h.run(60 * 4)
		require.False(t, g.safe.Get(g.ships[0]) != nil, "bots have none")
	}
}

func TestPeacefulShipsAreTheLastEnemies(t *testing.T) {
	s := scene{ships: []blip{
		{alive: true},
		{at: vec{X: 50}, alive: true, peaceful: true},
		{at: vec{X: 300}, alive: true},
		{at: vec{X: 60}, alive: true, peaceful: true},
	}}
	require.Equal(t, 2, s.nearestEnemy(cockpit{}))
	s.ships[2].alive = false
	require.Equal(t, 1, s.nearestEnemy(cockpit{}))
}

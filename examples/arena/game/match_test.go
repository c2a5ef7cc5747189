package game

import (
	"encoding/binary"
	"testing"

	"github.com/mlange-42/arche/ecs"
	"github.com/stretchr/testify/require"

	"github.com/arche-replicate/arche-replicate/replication"
)

// shipsOf returns how many ships players have, and how many bots there are.
func shipsOf(g *Game) (players, bots int) {
	for number, e := range g.ships {
		switch {
		case e.IsZero():
		case g.players[number].present:
			players++
		default:
			bots++
		}
	}
	return players, bots
}

func TestBotsFillUp(t *testing.T) {
	h := alone(1, 10, 60)
	g := h.Game
	step := func(ticks int) (players, bots int) {
		for range ticks {
			g.FillUp(10)
			h.run(1)
		}
		return shipsOf(g)
	}
	var numbers []int
	for range 3 {
		number, ok := g.Join("somebody", nil)
		require.True(t, ok)
		numbers = append(numbers, number)
	}
	players, bots := step(10)
	require.Equal(t, []int{3, 7}, []int{players, bots})
	g.Leave(numbers[1])
	players, bots = step(10)
	require.Equal(t, []int{2, 8}, []int{players, bots})
	for range 12 {
		_, ok := g.Join("somebody", nil)
		require.True(t, ok)
	}
	players, bots = step(20)
	require.Equal(t, []int{14, 0}, []int{players, bots}, "players never have to go")
	step(300)
	require.Len(t, g.AppendShips(nil, 7)[4:], 16*living(g))
	require.Equal(t, uint32(7), binary.LittleEndian.Uint32(g.AppendShips(nil, 7)))
}

func living(g *Game) (n int) {
	for _, ship := range g.radar.ships {
		if ship.alive {
			n++
		}
	}
	return n
}

func TestARestartBeginsARound(t *testing.T) {
	h := alone(1, 20, 60)
	g := h.Game
	g.FightSeconds = 100
	h.run(60 * 20)
	match := g.status.Get(g.match)
	require.Equal(t, Fight, match.Phase)
	require.InDelta(t, longestPhase+1.5-20, float64(match.TimeLeft), 1)
	require.Positive(t, match.Kills)
	g.Restart()
	h.run(1)
	match = g.status.Get(g.match)
	require.Equal(t, Warmup, match.Phase)
	require.Zero(t, match.Kills)
}

func TestScatterMovesEveryShip(t *testing.T) {
	g := play(1, 20, 60, 1)
	before := make([]vec, len(g.ships))
	for number, e := range g.ships {
		at, _, _, _ := g.body.Get(e)
		before[number] = at.vec()
	}
	g.Scatter()
	for number, e := range g.ships {
		at, _, _, _ := g.body.Get(e)
		require.NotEqual(t, before[number], at.vec())
	}
}

func TestAPlayerIsSentWhatHeWishes(t *testing.T) {
	p := newTable(2, 60, perfect, 1)
	p.play(t, 60, true, nil)
	wisher, other := p.guests[0], p.guests[1]
	entities := func(g *guest) (n int) {
		for range g.Client.Entities() {
			n++
		}
		return n
	}
	require.NoError(t, wisher.Wish(Wish{Every: 6, Radius: 150}))
	p.play(t, 60, true, nil)
	require.Equal(t, 6, wisher.Client.Stats().SendInterval)
	require.Equal(t, 3, other.Client.Stats().SendInterval)
	require.Less(t, entities(wisher), entities(other)/2)
	own, ok := lookAt(&wisher.world, uint16(wisher.Ship))
	require.True(t, ok)
	for number := range p.Game.ships {
		if at, ok := lookAt(&wisher.world, uint16(number)); ok {
			require.Less(t, at.sub(own).length(), 150.0+viewMargin+20, "ships move until they go out of view")
		}
	}
	require.NoError(t, wisher.Wish(Wish{Every: 1}))
	p.play(t, 60, true, nil)
	require.InDelta(t, entities(other), entities(wisher), 10)
}

func TestAWorldIsComparedAtTheEnd(t *testing.T) {
	for _, wrong := range []bool{false, true} {
		p := newTable(1, 20, bad, 1, true)
		g := p.guests[0]
		p.play(t, 300, true, nil)
		schema, _ := NewSchema()
		server := NewReader(&p.Game.World, schema)
		p.Game.Pause(true)
		p.settle(t)
		census := server.Census(func(yield func(replication.NetID, ecs.Entity) bool) {
			for id := range g.Client.Entities() {
				if e, ok := p.server.Entity(id); ok && !yield(id, e) {
					return
				}
			}
		})
		if wrong {
			census.Sum++
		}
		final := Final{Tick: uint32(p.server.Tick()), Entities: uint32(census.Entities), Sum: census.Sum}
		require.NoError(t, replication.SendToClient(g.peer, final))
		reader := NewReader(&g.world, schema)
		for range mostTries + 60 {
			p.play(t, 1, false, nil)
			g.Compare(reader)
		}
		require.True(t, g.Compared)
		require.Equal(t, !wrong, g.Equal)
	}
}

package main

import (
	"maps"
	"math"
	"testing"

	"github.com/mlange-42/arche/ecs"
	"github.com/mlange-42/arche/generic"
	"github.com/stretchr/testify/require"

	"github.com/arche-replicate/arche-replicate/replication"
)

// table is a server with some clients over memory.
type table struct {
	*host
	mirrors []*mirror
}

func newTable(t *testing.T, clients int, args ...string) *table {
	c := testConfig(t, args...)
	p := &table{host: newHost(&c)}
	for i := range clients {
		atServer, atClient := memoryPorts()
		p.welcome(newLine(atServer, c.seed+2*uint64(i), c.weather()))
		p.mirrors = append(p.mirrors, newMirror(pilotName(i), newLine(atClient, c.seed+2*uint64(i)+1, c.weather())))
	}
	return p
}

// play plays some ticks and calls each after every step of the server.
func (p *table) play(t *testing.T, ticks int, fight bool, each func()) {
	t.Helper()
	for range ticks {
		p.step(fight)
		if each != nil {
			each()
		}
		for _, m := range p.mirrors {
			require.NoError(t, m.step(p.truth))
			require.Zero(t, m.mismatches)
		}
	}
}

// settle makes the network perfect and waits until everything has arrived.
func (p *table) settle(t *testing.T) {
	t.Helper()
	p.heal()
	for _, m := range p.mirrors {
		m.line.heal()
	}
	p.play(t, 120, false, nil)
}

// crew returns the names of players by ship, for any world.
func crew(w *ecs.World) map[uint16]string {
	names := map[uint16]string{}
	query := generic.NewFilter2[Ship, Player]().Query(w)
	for query.Next() {
		ship, player := query.Get()
		names[ship.Number] = player.Name
	}
	return names
}

// players returns the players that have joined, according to the server.
func (p *table) players() map[uint16]string {
	names := map[uint16]string{}
	for i, g := range p.guests {
		if g.ship >= 0 {
			names[uint16(g.ship)] = p.mirrors[i].pilot.name
		}
	}
	return names
}

func TestPlayersPlayThroughInputsAndMessages(t *testing.T) {
	p := newTable(t, 4, "-bots", "8", "-loss", "0.1", "-latency", "50ms", "-jitter", "10ms", "-dup", "0.05", "-reorder", "0.05")
	sent, got := make([][]Hit, 4), make([][]Hit, 4)
	for i, m := range p.mirrors {
		replication.OnServerMessage(m.client, func(h Hit) { got[i] = append(got[i], h) })
	}
	shots := map[uint16]int{} // bullets in flight by owner, summed over ticks
	each := func() {
		for _, s := range p.game.hits {
			for i, g := range p.guests {
				if p.game.players[s.victim].present || g.ship == s.shooter {
					sent[i] = append(sent[i], Hit{uint16(s.victim), uint16(s.shooter), s.fatal})
				}
			}
		}
		query := p.game.bullets.Query(&p.game.World)
		for query.Next() {
			_, _, bullet := query.Get()
			shots[bullet.Owner]++
		}
	}

	p.play(t, 240, true, each)
	require.Equal(t, map[uint16]string{8: "Ada 1", 9: "Blériot 2", 10: "Bessie 3", 11: "Otto 4"}, shipsByName(p, 8))
	var before, after [3]uint64
	count := func(n *[3]uint64) {
		for _, g := range p.guests {
			s := g.peer.Stats()
			n[0] += s.Inputs
			n[1] += s.InputsMissed
			n[2] += s.RefusedPackets
		}
	}
	count(&before)
	p.play(t, 960, true, each)
	count(&after)
	p.settle(t)

	came, missed := after[0]-before[0], after[1]-before[1]
	require.InDelta(t, 4*960, came+missed, 100, "an input for every tick")
	require.GreaterOrEqual(t, inTime(came, missed), 0.99, "%d came in time, %d did not", came, missed)
	require.Zero(t, after[2], "nothing is refused")
	require.Equal(t, p.players(), crew(&p.game.World))
	for i, m := range p.mirrors {
		require.Equal(t, crew(&p.game.World), crew(&m.world), "client %d", i+1)
		require.Greater(t, len(sent[i]), 20)
		require.Equal(t, sent[i], got[i], "client %d receives every hit once, in order", i+1)
		require.Positive(t, m.pilot.received.Joined)
		require.InDelta(t, 20, m.pilot.received.Status, 10, "one a second, unreliable")
		require.Positive(t, shots[uint16(8+i)], "the player's ship has shot")
	}
}

// shipsByName returns the names of all players by ship, with the ship numbers put in the order of
// the clients, because the order of the Join messages does not matter.
func shipsByName(p *table, first uint16) map[uint16]string {
	names := map[uint16]string{}
	for i, g := range p.guests {
		if name, ok := crew(&p.game.World)[uint16(g.ship)]; ok {
			names[first+uint16(i)] = name
		}
	}
	return names
}

func TestInputsAreAllThatMovesAPlayersShip(t *testing.T) {
	g := NewGame(1, 1, 60)
	number, ok := g.Join("Ada")
	require.True(t, ok)
	e := g.ships[number]
	for range 120 {
		g.Step()
	}
	pos, heading, velocity, _ := g.body.Get(e)
	require.Zero(t, *velocity, "no input, no thrust")
	require.InDelta(t, 0, heading.angle(), 1e-6)
	at := pos.vec()

	pos.set(vec{})
	g.Command(number, Controls{Course: math.Pi / 2, Thrust: 1, Fire: true})
	shots := g.Tally.Shots
	for range 60 {
		g.Step()
	}
	pos, heading, _, _ = g.body.Get(e)
	require.InDelta(t, math.Pi/2, heading.angle(), 1e-6)
	require.Greater(t, pos.vec().Y, 20.0, "from %v", at)
	require.InDelta(t, 5, g.Tally.Shots-shots, 1, "one every %v s", reloadTime)
}

func TestLeavingRemovesTheShip(t *testing.T) {
	p := newTable(t, 3, "-bots", "4")
	all := func(want map[uint16]string) {
		t.Helper()
		require.Equal(t, want, crew(&p.game.World))
		for _, m := range p.mirrors {
			require.Equal(t, want, crew(&m.world))
		}
	}
	p.play(t, 120, true, nil)
	full := maps.Clone(crew(&p.game.World))
	require.Len(t, full, 3)
	all(full)

	// By a message; the pilot comes back after a break.
	require.NoError(t, p.mirrors[0].pilot.leave())
	p.mirrors[0].pilot.rest = breakTicks
	p.play(t, 100, true, nil)
	require.Len(t, crew(&p.game.World), 2)
	all(crew(&p.game.World))
	require.Positive(t, p.mirrors[1].pilot.received.Left)
	p.play(t, 140, true, nil)
	all(full) // it has the number that became free

	// By the end of the connection.
	number := uint16(p.guests[2].ship)
	p.dismiss(p.guests[2])
	p.mirrors = p.mirrors[:2]
	p.play(t, 120, true, nil)
	delete(full, number)
	all(full)
}

func TestTheArenaIsFull(t *testing.T) {
	p := newTable(t, 1, "-bots", "4", "-loss", "0")
	for number := 4; number < maxShips; number++ {
		_, ok := p.game.Join("a crowd")
		require.True(t, ok)
	}
	_, ok := p.game.Join("one too many")
	require.False(t, ok)
	var err error
	for range 120 {
		p.step(true)
		if err = p.mirrors[0].step(p.truth); err != nil {
			break
		}
	}
	var gone *replication.DisconnectError
	require.ErrorAs(t, err, &gone)
	require.Equal(t, replication.Reason{Code: reasonFull, Text: "the arena is full"}, gone.Reason)
}

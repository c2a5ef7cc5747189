package game

import (
	"maps"
	"math"
	"testing"
	"time"

	"github.com/mlange-42/arche/ecs"
	"github.com/mlange-42/arche/generic"
	"github.com/stretchr/testify/require"

	"github.com/arche-replicate/arche-replicate/replication"
	"github.com/arche-replicate/arche-replicate/replication/netsim"
)

// table is a server with some players, over simulated links.
type table struct {
	*Host
	guests []*guest
}

type guest struct {
	*Player
	world ecs.World
	peer  *replication.Peer
	link  *netsim.Link
}

var (
	perfect = netsim.Config{}
	bad     = netsim.Config{Loss: 0.1, Latency: 3, Jitter: 0.6, Duplicate: 0.05, Reorder: 0.05, ReorderBy: 6}
)

func newTable(players, bots int, network netsim.Config, seed uint64, interpolates ...bool) *table {
	g := New(seed, bots, 60)
	schema, model := NewSchema()
	server := replication.NewServer(&g.World, schema, replication.WithSeed(seed))
	t := &table{Host: NewHost(g, server, model, 60)}
	for i := range players {
		p := &guest{world: ecs.NewWorld(), link: netsim.NewLink(seed+uint64(i), network)}
		p.peer = server.Connect(p.link.Down.Send)
		p.peer.SetSendInterval(3)
		schema, model := NewSchema()
		client := replication.NewClient(&p.world, schema)
		client.SetSend(p.link.Up.Send)
		p.Player = NewPlayer(BotName(i), &p.world, client)
		if len(interpolates) > 0 && interpolates[0] {
			p.Interpolate()
		}
		p.Predict(model)
		t.guests = append(t.guests, p)
	}
	return t
}

// play plays some ticks and calls each after every step of the server.
func (p *table) play(t *testing.T, ticks int, fight bool, each func()) {
	t.Helper()
	for range ticks {
		for _, g := range p.guests {
			g.link.Step()
			g.link.Up.Receive(func(packet []byte) { _ = g.peer.Receive(packet) })
		}
		if fight {
			p.Step()
		}
		p.server.Replicate()
		if each != nil {
			each()
		}
		for _, g := range p.guests {
			g.link.Down.Receive(func(packet []byte) { _ = g.Client.Receive(packet) })
			require.NoError(t, g.Frame(time.Second/60))
		}
	}
}

// settle makes the network perfect and waits until everything has arrived.
func (p *table) settle(t *testing.T) {
	t.Helper()
	for _, g := range p.guests {
		g.link.SetConfig(perfect)
	}
	p.play(t, 120, false, nil)
}

// crew returns the names of players by ship, for any world.
func crew(w *ecs.World) map[uint16]string {
	names := map[uint16]string{}
	query := generic.NewFilter2[Ship, Callsign]().Query(w)
	for query.Next() {
		ship, player := query.Get()
		names[ship.Number] = player.Name
	}
	return names
}

func TestPlayersPlayThroughInputsAndMessages(t *testing.T) {
	p := newTable(4, 8, bad, 1)
	sent, got := make([][]Hit, 4), make([][]Hit, 4)
	for i, g := range p.guests {
		replication.OnServerMessage(g.Client, func(h Hit) { got[i] = append(got[i], h) })
	}
	shots := map[uint16]int{} // bullets in flight by owner, summed over ticks
	each := func() {
		for _, s := range p.Game.hits {
			for i, g := range p.guests {
				if p.Game.players[s.victim].present || g.Ship == s.shooter {
					sent[i] = append(sent[i], Hit{uint16(s.victim), uint16(s.shooter), s.fatal})
				}
			}
		}
		query := p.Game.bullets.Query(&p.Game.World)
		for query.Next() {
			_, _, bullet, _ := query.Get()
			shots[bullet.Owner]++
		}
	}

	p.play(t, 240, true, each)
	require.ElementsMatch(t, []string{"Ada 1", "Blériot 2", "Bessie 3", "Otto 4"}, slicesOf(crew(&p.Game.World)))
	count := func() (came, missed, refused uint64) {
		for _, g := range p.guests {
			s := g.peer.Stats()
			came += s.Inputs
			missed += s.InputsMissed
			refused += s.RefusedPackets
		}
		return came, missed, refused
	}
	came, missed, _ := count()
	p.play(t, 960, true, each)
	allCame, allMissed, refused := count()
	p.settle(t)

	came, missed = allCame-came, allMissed-missed
	require.InDelta(t, 4*960, came+missed, 100, "an input for every tick")
	require.GreaterOrEqual(t, float64(came)/float64(came+missed), 0.99, "%d came in time, %d did not", came, missed)
	require.Zero(t, refused, "nothing is refused")
	for i, g := range p.guests {
		require.Equal(t, crew(&p.Game.World), crew(&g.world), "client %d", i+1)
		require.Greater(t, len(sent[i]), 20)
		require.Equal(t, sent[i], got[i], "client %d receives every hit once, in order", i+1)
		require.Positive(t, g.Received.Joined)
		require.InDelta(t, 20, g.Received.Status, 10, "one a second, unreliable")
		require.Positive(t, shots[uint16(8+i)], "the player's ship has shot")
	}
}

func slicesOf(m map[uint16]string) (names []string) {
	for _, name := range m {
		names = append(names, name)
	}
	return names
}

func TestInputsAreAllThatMovesAPlayersShip(t *testing.T) {
	p := newTable(1, 1, perfect, 1)
	g, player := p.Game, p.guests[0]
	controls := Controls{}
	player.Steer = func() Controls { return controls }
	p.play(t, 120, true, nil)
	e := g.ships[player.Ship]
	pos, heading, velocity, _ := g.body.Get(e)
	require.Zero(t, *velocity, "no input, no thrust")
	require.InDelta(t, 0, heading.angle(), 1e-6)

	pos.set(vec{})
	controls = Controls{Course: math.Pi / 2, Thrust: 1, Fire: true}
	_, ammo, _ := g.stock.Get(e)
	rounds := ammo.Rounds
	p.play(t, 62, true, nil) // two on the way
	pos, heading, _, _ = g.body.Get(e)
	require.InDelta(t, math.Pi/2, heading.angle(), 0.01)
	require.Greater(t, pos.vec().Y, 20.0)
	_, ammo, _ = g.stock.Get(e)
	require.InDelta(t, 4, int(rounds)-int(ammo.Rounds), 1, "one every %v s, and one is made from scrap", reloadTime)
}

// At any round trip, the own ship and its bullets answer in the same frame, and become what the server makes of them.
// Without prediction, they wait for it.
func TestTheOwnShipAnswersInTheSameFrame(t *testing.T) {
	for _, late := range []bool{false, true} {
		p := newTable(1, 1, netsim.Config{Latency: 6}, 1, true)
		g, player := p.Game, p.guests[0]
		controls := Controls{}
		player.Steer = func() Controls { return controls }
		player.Late = late
		p.play(t, 300, true, nil) // the fight has begun
		place(g, player.Ship, vec{-300, -300}, 0)
		place(g, 0, vec{300, 300}, 0)
		g.players[0].present, *g.helm.Get(g.ships[0]) = true, Controls{} // it has no bot
		p.play(t, 60, true, nil)

		shots := g.Tally.Shots
		before, ok := lookAt(&player.world, uint16(player.Ship))
		require.True(t, ok)
		controls = Controls{Thrust: 1, Fire: true}
		p.play(t, 2, true, nil) // what is drawn is between two ticks
		at, _ := lookAt(&player.world, uint16(player.Ship))
		require.Equal(t, late, at == before, "from %v to %v", before, at)
		p.play(t, 60, true, nil)
		controls = Controls{Thrust: 1}
		p.play(t, 60, true, nil)
		stats := player.Predictor.Stats()
		shots = g.Tally.Shots - shots
		require.InDelta(t, 4, shots, 1)
		require.Zero(t, stats.Refused)
		if late {
			shots = 0
		}
		require.EqualValues(t, shots, stats.Spawns)
	}
}

func TestLeavingRemovesTheShip(t *testing.T) {
	p := newTable(3, 4, netsim.Config{Latency: 3, Jitter: 0.6, Loss: 0.05}, 1)
	all := func(want map[uint16]string) {
		t.Helper()
		require.Equal(t, want, crew(&p.Game.World))
		for _, g := range p.guests {
			require.Equal(t, want, crew(&g.world))
		}
	}
	p.play(t, 120, true, nil)
	full := maps.Clone(crew(&p.Game.World))
	require.Len(t, full, 3)
	all(full)

	// By a message; the bot comes back after a break.
	first := p.guests[0]
	require.NoError(t, first.Leave())
	first.rest = breakTime
	p.play(t, 100, true, nil)
	require.Len(t, crew(&p.Game.World), 2)
	all(crew(&p.Game.World))
	require.Positive(t, p.guests[1].Received.Left)
	p.play(t, 140, true, nil)
	all(full) // it has the number that became free

	// By the end of the connection.
	delete(full, uint16(p.guests[2].Ship))
	p.guests[2].peer.Disconnect(replication.Reason{})
	p.guests = p.guests[:2]
	p.play(t, 120, true, nil)
	all(full)
}

func TestTheArenaIsFull(t *testing.T) {
	p := newTable(1, 4, perfect, 1)
	for number := 4; number < maxShips; number++ {
		_, ok := p.Game.Join("a crowd", nil)
		require.True(t, ok)
	}
	_, ok := p.Game.Join("one too many", nil)
	require.False(t, ok)
	guest := p.guests[0]
	p.guests = nil // played here
	var err error
	for range 120 {
		guest.link.Up.Receive(func(packet []byte) { _ = guest.peer.Receive(packet) })
		p.Step()
		p.server.Replicate()
		guest.link.Down.Receive(func(packet []byte) { _ = guest.Client.Receive(packet) })
		if err = guest.Frame(time.Second / 60); err != nil {
			break
		}
	}
	var gone *replication.DisconnectError
	require.ErrorAs(t, err, &gone)
	require.Equal(t, replication.Reason{Code: ReasonFull, Text: "the arena is full"}, gone.Reason)
}

// A player sees a target that crosses late, by the round trip and more, beside his own bullets, which are predicted, and
// shoots where he sees it. Bullets are judged by that, if he interpolates; without rewind all of these pass behind the target.
func TestShotsHitWhatTheShooterSaw(t *testing.T) {
	for _, interpolates := range []bool{true, false} {
		p := newTable(1, 1, netsim.Config{Latency: 6, Jitter: 1}, 1, interpolates)
		g, shooter := p.Game, p.guests[0]
		p.play(t, 300, true, nil) // the fight has begun
		fires := false
		shooter.Steer = func() Controls {
			// The target crosses 40 units in front: 0.1 s of flight.
			at, _ := lookAt(&shooter.world, 0)
			return Controls{Course: math.Pi / 2, Fire: fires && math.Abs(at.X+0.1*topSpeed) < 3}
		}
		hits := 0
		for range 40 {
			for tick := range 90 {
				fires = tick < 80
				place(g, shooter.Ship, vec{}, math.Pi/2)
				place(g, 0, vec{float64(tick-40) * topSpeed / 60, 40}, 0)
				g.players[0].present, *g.helm.Get(g.ships[0]) = true, Controls{} // it has no bot
				p.play(t, 1, true, nil)
				for _, hit := range g.hits {
					if hit.shooter == shooter.Ship {
						hits++
					}
				}
				hull, _, _ := g.stock.Get(g.ships[0])
				hull.Points = freshHull
			}
		}
		if interpolates {
			require.Greater(t, hits, 20)
		} else {
			require.Less(t, hits, 5)
		}
	}
}

// place puts a ship somewhere.
func place(g *Game, number int, at vec, heading float64) {
	pos, h, velocity, _ := g.body.Get(g.ships[number])
	pos.set(at)
	h.set(heading)
	velocity.set(vec{})
}

// lookAt returns where a world shows a ship.
func lookAt(w *ecs.World, number uint16) (at vec, ok bool) {
	query := generic.NewFilter2[Position, Ship]().Query(w)
	for query.Next() {
		if pos, ship := query.Get(); ship.Number == number {
			at, ok = pos.vec(), true
		}
	}
	return at, ok
}

package main

import (
	"fmt"

	"github.com/mlange-42/arche/ecs"
	"github.com/mlange-42/arche/generic"

	"github.com/arche-replicate/arche-replicate/replication"
)

const (
	enoughDeaths = 3   // after which a pilot takes a break
	breakTicks   = 120 // for how long
)

// pilot is the player on a client: a bot that sees only the client's world and the messages, and
// can only set inputs and send messages.
type pilot struct {
	name     string
	client   *replication.Client
	session  uint64  // in which it has joined
	ship     int     // the number of its own ship, or -1
	dt       float64 // seconds per tick
	deaths   int
	controls Controls // latest
	rest     int      // ticks left of a break
	received messageCounts

	scene
	tracks map[replication.NetID]track

	body    generic.Map2[Position, Ship]
	heading generic.Map[Heading]
	stock   generic.Map2[Hull, Ammo]
	crate   generic.Map2[Position, PowerUp]
}

// messageCounts counts the messages of the server.
type messageCounts struct {
	Joined int `json:"joined"`
	Left   int `json:"left"`
	Hits   int `json:"hits"`
	Status int `json:"status"`
}

func (n *messageCounts) add(m messageCounts) {
	n.Joined += m.Joined
	n.Left += m.Left
	n.Hits += m.Hits
	n.Status += m.Status
}

// outlook is a client's estimate of the connection, in ticks.
type outlook struct {
	InputDelay float64 // by how much its inputs are ahead of the server

	// RoundTrip is the time from sending something to the server's answer, smoothed by the library,
	// see [replication.ClientStats]; 0 if unknown. All round trips that the arena prints are
	// this one: the latency of the link in both directions, and up to a tick at each end.
	RoundTrip float64
}

// track is the latest known position of a ship, with its velocity.
type track struct {
	tick     uint32
	at       vec
	velocity vec
}

// pilotName is a name for the player of a client.
func pilotName(i int) string {
	names := [...]string{"Ada", "Blériot", "Bessie", "Otto", "Amelia", "Zoë", "Wilbur", "Saburō"}
	return fmt.Sprintf("%s %d", names[i%len(names)], i+1)
}

func newPilot(name string, w *ecs.World, client *replication.Client) *pilot {
	p := &pilot{
		name:    name,
		ship:    -1,
		client:  client,
		tracks:  map[replication.NetID]track{},
		body:    generic.NewMap2[Position, Ship](w),
		heading: generic.NewMap[Heading](w),
		stock:   generic.NewMap2[Hull, Ammo](w),
		crate:   generic.NewMap2[Position, PowerUp](w),
	}
	replication.OnInput(client, p.steer)
	replication.OnServerMessage(client, func(m Welcome) {
		p.ship, p.dt, p.deaths = int(m.Ship), 1/float64(m.TickRate), 0
	})
	replication.OnServerMessage(client, func(Joined) { p.received.Joined++ })
	replication.OnServerMessage(client, func(Left) { p.received.Left++ })
	replication.OnServerMessage(client, func(Status) { p.received.Status++ })
	replication.OnServerMessage(client, func(m Hit) {
		p.received.Hits++
		if m.Fatal && int(m.Victim) == p.ship {
			p.deaths++
		}
	})
	return p
}

// steer gives the input for a tick.
func (p *pilot) steer(tick replication.Tick) Controls {
	if me, ok := p.look(uint32(tick)); ok {
		p.controls = p.navigate(me)
	} else {
		p.controls.Fire = false // keep the other controls, so that every tick has an input
	}
	return p.controls
}

// comeAndGo joins in every new session and after a break, and takes a break when the ship was shot
// down often enough.
func (p *pilot) comeAndGo() {
	if p.deaths >= enoughDeaths && p.leave() == nil {
		p.rest = breakTicks
	}
	if p.rest > 0 {
		p.rest--
		return
	}
	session := p.client.Stats().Sessions
	if p.session != session && replication.SendToServer(p.client, Join{p.name}) == nil {
		p.session, p.ship, p.deaths = session, -1, 0
		clear(p.tracks) // these ships may be gone
	}
}

// leave gives the ship back. The pilot joins again when its break is over.
func (p *pilot) leave() error {
	err := replication.SendToServer(p.client, Leave{Tired: true})
	if err == nil {
		p.session, p.ship, p.deaths = 0, -1, 0
	}
	return err
}

// look makes a scene from the client's world, extrapolated to the tick of the input. It returns
// false if the pilot's own ship is not there or not alive.
func (p *pilot) look(tick uint32) (me cockpit, ok bool) {
	if p.ship < 0 {
		return me, false
	}
	p.ships, p.crates = p.ships[:0], p.crates[:0]
	for id, e := range p.client.Entities() {
		seen, _ := p.client.StateTick(e)
		if at, powerUp := p.crate.Get(e); powerUp != nil {
			if powerUp.Kind != NoPowerUp {
				p.crates = append(p.crates, crate{at.vec(), powerUp.Kind})
			}
			continue
		}
		at, ship := p.body.Get(e)
		if ship == nil || at == nil {
			continue
		}
		t := p.tracks[id]
		if passed := int32(seen - replication.Tick(t.tick)); passed > 0 {
			v := at.vec().sub(t.at).times(1 / (float64(passed) * p.dt))
			if v.length() > 2*topSpeed {
				v = vec{} // seen for the first time, or respawned elsewhere
			}
			t = track{uint32(seen), at.vec(), v}
			p.tracks[id] = t
		}
		if int(ship.Number) == p.ship {
			heading, hull, ammo := p.instruments(e)
			ok = ship.Alive && heading != nil && hull != nil && ammo != nil
			if ok {
				me = cockpit{len(p.ships), heading.angle(), hull.Points, ammo.Rounds, 1}
			}
		}
		ahead := float64(int32(replication.Tick(tick)-seen)) * p.dt
		p.ships = append(p.ships, blip{t.at.add(t.velocity.times(ahead)), t.velocity, ship.Alive})
	}
	return me, ok
}

// instruments returns the components of the pilot's own ship.
func (p *pilot) instruments(e ecs.Entity) (*Heading, *Hull, *Ammo) {
	hull, ammo := p.stock.Get(e)
	return p.heading.Get(e), hull, ammo
}

package game

import (
	"fmt"
	"math"
	"time"

	"github.com/mlange-42/arche/ecs"
	"github.com/mlange-42/arche/generic"

	"github.com/arche-replicate/arche-replicate/replication"
	"github.com/arche-replicate/arche-replicate/replication/interpolation"
	"github.com/arche-replicate/arche-replicate/replication/predict"
)

// Player is the game on a client. It joins with a message, sees only the client's world, and steers
// a ship with inputs. In each frame, after packets were received:
//
//	err := player.Frame(dt)
type Player struct {
	Name   string
	Client *replication.Client
	// Shown is what interpolation shows, or nil: then the world has the newest states, and the server
	// judges shots by the present.
	Shown *interpolation.Interpolation
	// Predictor predicts the own ship and its bullets, or is nil: then they are shown as late as the others. So they
	// are with Late.
	Predictor *predict.Predictor
	Late      bool
	// Steer gives the input for a tick. It is Autopilot until somebody takes over.
	Steer    func() Controls
	Ship     int // the number of the own ship, or -1
	Peer     int // the number of this client at the server's inspector, or -1
	Received MessageCounts
	// Human players take no breaks.
	Human bool
	// Hit, if it is not nil, is called for every hit that the server announces.
	Hit func(Hit)
	// Final is the server's world at the end of the fight, or nil before. Compare compares.
	Final           *Final
	Compared, Equal bool

	world    *ecs.World
	tries    int
	session  uint64 // in which it has joined
	dt       float64
	deaths   int
	controls Controls // latest of Autopilot
	rest     time.Duration

	reported struct { // to the server, by Checked
		compared, diverged uint64
		before             time.Duration
	}

	predicts  bool // it has not let go
	predicted *generic.Filter1[predict.Predicted]
	parked    *generic.Filter1[predict.Parked]
	matches   *generic.Filter1[Match]

	scene
	tracks map[replication.NetID]track

	body    generic.Map2[Position, Ship]
	heading generic.Map[Heading]
	stock   generic.Map2[Hull, Ammo]
	crate   generic.Map2[Position, PowerUp]
	speed   generic.Map2[Velocity, predict.Predicted]
}

const (
	enoughDeaths = 3 // after which a bot takes a break
	breakTime    = 2 * time.Second
)

// MessageCounts counts the messages of the server.
type MessageCounts struct {
	Joined int `json:"joined"`
	Left   int `json:"left"`
	Hits   int `json:"hits"`
	Status int `json:"status"`
}

// Add adds the counts of another player.
func (n *MessageCounts) Add(m MessageCounts) {
	n.Joined += m.Joined
	n.Left += m.Left
	n.Hits += m.Hits
	n.Status += m.Status
}

// track is the latest known position of a ship, with its velocity.
type track struct {
	at       replication.Time
	place    vec
	velocity vec
}

// BotName is a name for the i-th player.
func BotName(i int) string {
	names := [...]string{"Ada", "Blériot", "Bessie", "Otto", "Amelia", "Zoë", "Wilbur", "Saburō"}
	return fmt.Sprintf("%s %d", names[i%len(names)], i+1)
}

// NewPlayer makes a client play, as a bot.
func NewPlayer(name string, w *ecs.World, client *replication.Client) *Player {
	p := &Player{
		Name:    name,
		Ship:    -1,
		Peer:    -1,
		Client:  client,
		world:   w,
		tracks:  map[replication.NetID]track{},
		body:    generic.NewMap2[Position, Ship](w),
		heading: generic.NewMap[Heading](w),
		stock:   generic.NewMap2[Hull, Ammo](w),
		crate:   generic.NewMap2[Position, PowerUp](w),
		speed:   generic.NewMap2[Velocity, predict.Predicted](w),

		predicted: generic.NewFilter1[predict.Predicted](),
		parked:    generic.NewFilter1[predict.Parked](),
		matches:   generic.NewFilter1[Match](),
	}
	p.Steer = p.Autopilot
	replication.OnInput(client, func(replication.Tick) Controls { return p.Steer() })
	replication.OnServerMessage(client, func(m Welcome) {
		p.Ship, p.Peer, p.dt, p.deaths = int(m.Ship), int(m.Peer), 1/float64(m.TickRate), 0
	})
	replication.OnServerMessage(client, func(Joined) { p.Received.Joined++ })
	replication.OnServerMessage(client, func(Left) { p.Received.Left++ })
	replication.OnServerMessage(client, func(Status) { p.Received.Status++ })
	replication.OnServerMessage(client, func(m Final) { p.Final = &m })
	replication.OnServerMessage(client, func(m Hit) {
		p.Received.Hits++
		if p.Hit != nil {
			p.Hit(m)
		}
		if m.Fatal && int(m.Victim) == p.Ship {
			p.deaths++
		}
	})
	return p
}

// Interpolate makes ships move smoothly, a moment late, and the server judge shots accordingly.
func (p *Player) Interpolate() { p.Shown = interpolation.Attach(p.Client) }

// Predict makes the own ship and its bullets move at once. Interpolate first, so that Steer sees what is shown.
func (p *Player) Predict(m *Model) {
	p.Predictor = predict.Attach(p.Client, m, func() Controls { return p.Steer() })
	p.predicts = true
}

// letGo makes the predictor let go of everything with Late, and in a paused match, and go on afterwards.
func (p *Player) letGo() {
	if p.Predictor == nil {
		return
	}
	on := !p.Late
	for q := p.matches.Query(p.world); q.Next(); {
		on = on && !q.Get().Paused
	}
	if on && !p.predicts {
		for _, e := range p.Client.Entities() {
			if _, ship := p.body.Get(e); ship != nil && int(ship.Number) == p.Ship {
				p.Predictor.Predict(e, 0)
			}
		}
	}
	p.predicts = on
	if on {
		return
	}
	release := func(e ecs.Entity) {
		if _, ok := p.Client.NetID(e); ok {
			p.Predictor.Release(e, 0)
		}
	}
	for q := p.predicted.Query(p.world); q.Next(); {
		release(q.Entity())
	}
	for q := p.parked.Query(p.world); q.Next(); {
		release(q.Entity())
	}
}

// Frame brings the client's world up to date, and joins in every new session and after a break.
func (p *Player) Frame(dt time.Duration) error {
	if err := p.Client.Frame(dt); err != nil {
		return err
	}
	if p.Client.Status() != replication.StatusConnected {
		return nil
	}
	p.letGo()
	p.report(dt)
	if !p.Human && p.deaths >= enoughDeaths && p.Leave() == nil {
		p.rest = breakTime
	}
	if p.rest > 0 {
		p.rest -= dt
		return nil
	}
	session := p.Client.Stats().Sessions
	// A message that can't be sent now is sent in a later frame.
	if p.session != session && replication.SendToServer(p.Client, Join{p.Name}) == nil {
		p.session, p.Ship, p.Peer, p.deaths = session, -1, -1, 0
		clear(p.tracks) // these ships may be gone
	}
	return nil
}

// report sends the server what was compared with its hashes.
func (p *Player) report(dt time.Duration) {
	r, s := &p.reported, p.Client.Stats()
	if r.before += dt; r.before < time.Second || s.HashesCompared == r.compared {
		return
	}
	m := Checked{
		uint16(min(s.HashesCompared-r.compared, math.MaxUint16)), uint16(min(s.Diverged-r.diverged, math.MaxUint16)),
	}
	if replication.SendToServer(p.Client, m) == nil { // or later
		r.compared, r.diverged, r.before = s.HashesCompared, s.Diverged, 0
	}
}

// Leave gives the ship back. The next frame joins again, after a break if there is one.
func (p *Player) Leave() error {
	err := replication.SendToServer(p.Client, Leave{Tired: true})
	if err == nil {
		p.session, p.Ship, p.deaths = 0, -1, 0
	}
	return err
}

// Wish asks the server to send the world in another way.
func (p *Player) Wish(w Wish) error { return replication.SendToServer(p.Client, w) }

// mostTries is in how many frames Compare compares: the ends of entities that arrived late are shown
// a frame later.
const mostTries = 60

// Compare compares the world with that at the end of the fight, once the client shows it, and answers
// the server. Call it after Frame.
func (p *Player) Compare(r *Reader) {
	if p.Final == nil || p.Compared {
		return
	}
	end := replication.Tick(p.Final.Tick)
	settled, ok := p.Client.Settled()
	if p.Shown != nil && ok {
		var shown replication.Time
		shown, ok = p.Shown.Time()
		ok = ok && int32(shown.Tick-end) >= 0 // ticks wrap
	}
	if !ok || int32(settled-end) < 0 {
		return
	}
	p.Equal = r.Census(p.Client.Entities()) == Census{int(p.Final.Entities), p.Final.Sum}
	if p.tries++; !p.Equal && p.tries < mostTries {
		return
	}
	// If the message can't be sent now, a later frame does.
	p.Compared = replication.SendToServer(p.Client, Compared{p.Equal}) == nil
}

// Autopilot steers as a bot.
func (p *Player) Autopilot() Controls {
	if me, ok := p.look(replication.Time{Tick: p.Client.InputTick()}); ok {
		p.controls = p.navigate(me)
	} else {
		p.controls.Fire = false // keep the other controls, so that every tick has an input
	}
	return p.controls
}

// shownAt returns the time as of which the world shows an entity.
func (p *Player) shownAt(e ecs.Entity) (at replication.Time) {
	if p.Shown != nil {
		at, _ = p.Shown.Time()
		return at
	}
	at.Tick, _ = p.Client.StateTick(e)
	return at
}

// look makes a scene from the client's world for the tick of an input, at which the own ship has
// moved on, unless it is predicted. Others are aimed at as they are shown, or as they will be at that
// tick if they are not interpolated. It returns false if the own ship is not there or not alive.
func (p *Player) look(input replication.Time) (me cockpit, ok bool) {
	if p.Ship < 0 {
		return me, false
	}
	p.ships, p.crates = p.ships[:0], p.crates[:0]
	for id, e := range p.Client.Entities() {
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
		own := int(ship.Number) == p.Ship
		if own {
			heading, hull, ammo := p.instruments(e)
			ok = ship.Alive && heading != nil && hull != nil && ammo != nil
			if ok {
				me = cockpit{len(p.ships), heading.angle(), hull.Points, ammo.Rounds, 1}
			}
		}
		shown := p.shownAt(e)
		t := p.follow(id, shown, at.vec())
		place := t.place
		if v, predicted := p.speed.Get(e); predicted != nil && v != nil {
			t.velocity = v.vec()
		} else if own || p.Shown == nil {
			place = place.add(t.velocity.times(input.Sub(shown) * p.dt))
		}
		p.ships = append(p.ships, blip{at: place, velocity: t.velocity, alive: ship.Alive})
	}
	return me, ok
}

// follow updates the track of a ship.
func (p *Player) follow(id replication.NetID, shown replication.Time, place vec) track {
	t, known := p.tracks[id]
	passed := shown.Sub(t.at)
	if known && passed <= 0 {
		return t
	}
	v := place.sub(t.place).times(1 / (passed * p.dt))
	if !known || v.length() > 2*topSpeed {
		v = vec{} // seen for the first time, or respawned elsewhere
	}
	t = track{shown, place, v}
	p.tracks[id] = t
	return t
}

// instruments returns the components of the player's own ship.
func (p *Player) instruments(e ecs.Entity) (*Heading, *Hull, *Ammo) {
	hull, ammo := p.stock.Get(e)
	return p.heading.Get(e), hull, ammo
}

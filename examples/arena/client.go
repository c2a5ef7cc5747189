package main

import (
	"fmt"
	"time"

	"github.com/mlange-42/arche/ecs"

	"github.com/arche-replicate/arche-replicate/examples/arena/game"
	"github.com/arche-replicate/arche-replicate/replication"
	"github.com/arche-replicate/arche-replicate/replication/netsim"
	"github.com/arche-replicate/arche-replicate/replication/transport/udp"
)

// client is a world of its own that follows the server's, with a bot that plays in it.
type client struct {
	*game.Player
	world   ecs.World
	receive func() // gives the client what has arrived
	close   func() // its connection
	reader  *reader
	scratch []uint64

	// Comparisons: with the record tick by tick, by a server in this process.
	checks, mismatches int
	tooOld             int // entities older than the record

	// The answer to the message Final, of a server elsewhere.
	final           *game.Final
	tries           int
	compared, equal bool
	over            bool // the server has ended the fight
}

func newClient(i int) *client {
	c := &client{world: ecs.NewWorld(1024)}
	schema, name := game.NewSchema(), game.BotName(i)
	library := replication.NewClient(&c.world, schema, replication.WithJoinData([]byte(name)))
	c.Player = game.NewPlayer(name, &c.world, library)
	c.reader = newReader(&c.world, schema)
	replication.OnServerMessage(library, func(m game.Final) { c.final = &m })
	return c
}

// dial connects the client over a socket.
func (c *client) dial(address string, network *netsim.Network) error {
	conn, err := udp.Dial(address, c.Client, udp.WithNetwork(network))
	if err != nil {
		return err
	}
	c.receive, c.close = conn.Poll, func() { _ = conn.Close() } // it reports nothing that matters now
	return nil
}

// frame is one iteration of the client's loop: receive packets, and show a frame. A real client would
// draw its world now.
func (c *client) frame(dt time.Duration) error {
	c.receive()
	if err := c.Frame(dt); err != nil {
		return fmt.Errorf("the server does not want this client: %w", err)
	}
	return nil
}

// ticks converts a duration to ticks of the server.
func (c *client) ticks(d time.Duration) float64 { return d.Seconds() * float64(c.Client.TickRate()) }

// check compares every shown entity with the record of the tick that the client shows.
func (c *client) check(t *truth) {
	for id, e := range c.Client.Entities() {
		tick, _ := c.Client.StateTick(e)
		c.scratch = c.reader.codes(e, c.scratch[:0])
		switch t.check(id, tick, c.scratch) {
		case tooOld:
			c.tooOld++
			continue
		case wrong:
			c.mismatches++
		}
		c.checks++
	}
}

// equals reports whether the client shows exactly the latest record.
func (c *client) equals(t *truth) bool { return c.reader.census(c.Client.Entities()) == t.census() }

// judge compares the world with that at the end of the fight, once the client shows it, and answers.
func (c *client) judge() {
	if c.final == nil || c.compared {
		return
	}
	end := replication.Tick(c.final.Tick)
	settled, ok := c.Client.Settled()
	if c.Shown != nil && ok {
		var shown replication.Time
		shown, ok = c.Shown.Time()
		ok = ok && !newer(end, shown.Tick)
	}
	if !ok || newer(end, settled) {
		return
	}
	c.equal = c.reader.census(c.Client.Entities()) == census{int(c.final.Entities), c.final.Sum}
	if c.tries++; !c.equal && c.tries < frameRate {
		return // the ends of entities that arrived late are shown a frame later
	}
	// If the message can't be sent now, a later frame does.
	c.compared = replication.SendToServer(c.Client, game.Compared{Equal: c.equal}) == nil
}

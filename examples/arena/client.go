package main

import (
	"fmt"
	"slices"
	"time"

	"github.com/mlange-42/arche/ecs"

	"github.com/arche-replicate/arche-replicate/examples/arena/game"
	"github.com/arche-replicate/arche-replicate/replication"
	"github.com/arche-replicate/arche-replicate/replication/netsim"
	"github.com/arche-replicate/arche-replicate/replication/predict"
	"github.com/arche-replicate/arche-replicate/replication/transport/udp"
)

// client is a world of its own that follows the server's, with a bot that plays in it.
type client struct {
	*game.Player
	world   ecs.World
	receive func() // gives the client what has arrived
	close   func() // its connection
	reader  *game.Reader
	scratch []uint64

	// Comparisons: with the record tick by tick, by a server in this process.
	checks, mismatches int
	tooOld             int // entities older than the record

	over bool // the server has ended the fight
}

func newClient(i int, predicts, interpolates bool) *client {
	c := &client{world: ecs.NewWorld(1024)}
	name := game.BotName(i)
	schema, model := game.NewSchema()
	library := replication.NewClient(&c.world, schema, replication.WithJoinData([]byte(name)))
	c.Player = game.NewPlayer(name, &c.world, library)
	if interpolates {
		c.Interpolate()
	}
	if predicts {
		c.Predict(model)
	}
	c.reader = game.NewReader(&c.world, schema)
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

// predicted returns what is known of predictions.
func (c *client) predicted() (s predict.Stats) {
	if c.Predictor != nil {
		s = c.Predictor.Stats()
	}
	return s
}

// check compares every shown entity with the record of the tick that the client shows, but for what it predicts.
func (c *client) check(t *truth) {
	for id, e := range c.Client.Entities() {
		tick, _ := c.Client.StateTick(e)
		codes, known := t.at(id, tick)
		if !known {
			c.tooOld++
			continue
		}
		c.scratch = c.reader.CodesBeside(e, codes, c.scratch[:0])
		if !slices.Equal(codes, c.scratch) {
			c.mismatches++
		}
		c.checks++
	}
}

// equals reports whether the client shows exactly the latest record.
func (c *client) equals(t *truth) bool { return c.reader.Census(c.Client.Entities()) == t.census() }

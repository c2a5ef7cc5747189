//go:build js

package main

import (
	"fmt"
	"math"
	"math/rand/v2"
	"runtime"
	"syscall/js"
	"time"

	"github.com/mlange-42/arche/ecs"

	"github.com/arche-replicate/arche-replicate/examples/arena/game"
	"github.com/arche-replicate/arche-replicate/replication"
	"github.com/arche-replicate/arche-replicate/replication/inspect"
	"github.com/arche-replicate/arche-replicate/replication/transport/web"
)

// client is the player of the page.
type client struct {
	*game.Player
	world   ecs.World
	conn    *web.Conn
	dialing bool // conn changes
	wire    *wire
	inspect *inspect.Inspector
	reader  *game.Reader
	failed  error // of Frame
	retry   time.Time
	paused  time.Time // until then

	controls game.Controls
	alive    bool // in the latest frame
	wish     game.Wish
	wished   bool // the server knows
	session  uint64
	coding   string
	newest   bool // without interpolation

	view   *view
	ghosts ghosts
	lamp   lamp
	sum    string
	summed time.Time
}

// newClient connects a player.
func newClient() *client {
	c := &client{world: ecs.NewWorld(1024), coding: "packed", wish: game.Wish{Every: 3}}
	schema, model := game.NewSchema()
	library := replication.NewClient(&c.world, schema)
	name := query("name")
	if name == "" {
		name = fmt.Sprintf("Pilot %d", 1+rand.IntN(99))
	}
	c.Player = game.NewPlayer(name, &c.world, library)
	c.Human = true
	c.Steer = func() game.Controls { return c.controls }
	c.Hit = func(h game.Hit) { c.view.hit(h, c.Ship) }
	c.Interpolate()
	c.Predict(model)
	c.reader = game.NewReader(&c.world, schema)
	c.inspect = inspect.Client(library, inspect.WithInterpolation(c.Shown), inspect.WithPrediction(c.Predictor),
		inspect.WithName(name))
	c.view = newView(&c.world, library, c.Shown)
	c.wire = tapWire(query("transport") == "websocket")
	c.dial()
	return c
}

// export gives the page the functions.
func (c *client) export(page exports) {
	page.function("frame", func(args []js.Value) any {
		c.frame(args[0].Float(), args[1])
		return c.view.result()
	})
	page.function("status", func([]js.Value) any { return c.status().js })
	page.function("stats", func(args []js.Value) any {
		since := int64(0)
		if len(args) > 0 {
			since = int64(args[0].Float())
		}
		return string(c.inspect.AppendJSON(nil, since, -1))
	})
	page.function("heap", func([]js.Value) any { // bytes after the latest collection, about, and in all
		var m runtime.MemStats
		runtime.ReadMemStats(&m)
		return []any{float64(m.NextGC) / 2, float64(m.Sys)}
	})
	page.function("events", func([]js.Value) any { return c.view.takeEvents() })
	page.function("set", func(args []js.Value) any {
		c.set(args[0].String(), args[1])
		return nil
	})
}

// dial connects to the handler of the coding.
func (c *client) dial() {
	url := "/play"
	if c.coding == "compact" {
		url = "/play/compact"
	}
	c.conn, c.failed = web.Dial(url, c.Client)
}

// frame brings the world up to date and makes the rows that the page draws.
func (c *client) frame(ms float64, controls js.Value) {
	now := time.Now()
	if c.dialing || c.conn == nil || now.Before(c.paused) {
		return
	}
	dt := time.Duration(ms * float64(time.Millisecond))
	c.steer(dt.Seconds(), controls)
	c.conn.Poll()
	if c.failed != nil && now.After(c.retry) {
		c.failed = nil
		c.Client.Reconnect()
	}
	if c.failed == nil {
		if c.failed = c.Frame(dt); c.failed != nil {
			c.retry = now.Add(2 * time.Second)
		}
	}
	c.Compare(c.reader)
	if session := c.Client.Stats().Sessions; session != c.session {
		c.session, c.wished = session, false
	}
	if !c.wished && c.Client.Status() == replication.StatusConnected {
		c.wished = c.Wish(c.wish) == nil
	}
	c.lamp.update(c.Client.Stats(), now)
	c.view.draw(c.Ship, c.newest, c.ghosts.ships)
}

// turnRate is by how much the keys turn the wanted course, in radians per second: as fast as ships do.
const turnRate = 3.5

// steer makes the input of the page's controls.
func (c *client) steer(seconds float64, page js.Value) {
	if page.Type() != js.TypeObject {
		return
	}
	number := func(name string) (float64, bool) {
		v := page.Get(name)
		return max(-1e9, min(numberOf(v), 1e9)), v.Type() == js.TypeNumber
	}
	if alive := c.view.own.alive; alive != c.alive {
		c.alive = alive
		c.controls.Course = c.view.own.angle
	}
	if turn, ok := number("turn"); ok {
		c.controls.Course += max(-1, min(turn, 1)) * turnRate * seconds
	}
	if course, ok := number("course"); ok {
		c.controls.Course = course
	}
	c.controls.Course = math.Remainder(c.controls.Course, 2*math.Pi)
	thrust, _ := number("thrust")
	c.controls.Thrust = max(0, min(thrust, 1))
	c.controls.Fire = page.Get("fire").Truthy()
}

// set changes a setting.
func (c *client) set(name string, value js.Value) {
	switch name {
	case "name":
		c.Name = value.String()
		_ = c.Leave() // the next frame joins by the new name; without a session the next one does anyway
	case "interpolation":
		c.newest = !value.Truthy()
	case "prediction":
		c.Late = !value.Truthy()
	case "ghosts":
		c.ghosts.show(value.Truthy())
	case "pauseClient":
		c.paused = time.Now().Add(time.Duration(max(0, min(numberOf(value), 60_000))) * time.Millisecond)
	case "stopAcks":
		c.wire.stop(value.Truthy())
	case "sendRate":
		rate := max(1, min(numberOf(value), 60))
		c.wish.Every, c.wished = uint8(max(1, math.Round(60/rate))), false
	case "radius":
		c.wish.Radius, c.wished = uint16(max(0, min(numberOf(value), 2047))), false
	case "coding":
		if coding := value.String(); coding != c.coding && !c.dialing && (coding == "packed" || coding == "compact") {
			c.coding, c.dialing = coding, true
			go c.redial()
		}
	default:
		js.Global().Get("console").Call("warn", "arena.set: there is no setting "+name)
	}
}

// redial connects anew. It waits, which functions that the page calls must not.
func (c *client) redial() {
	if c.conn != nil {
		_ = c.conn.Close() // the next connection counts
	}
	c.dial()
	c.Client.Reconnect()
	c.dialing = false
}

// status is what the page writes.
func (c *client) status() object {
	now := time.Now()
	stats, shown := c.Client.Stats(), c.Shown.Stats()
	tick, _ := c.Client.Settled()
	if now.Sub(c.summed) >= time.Second/2 {
		c.summed = now
		c.sum = fmt.Sprintf("%016x", c.reader.Census(c.Client.Entities()).Sum)
	}
	state, why := "connecting", ""
	switch {
	case c.failed != nil:
		state, why = "lost", c.failed.Error()
	case c.Client.Status() == replication.StatusConnected:
		state = "connected"
	case stats.Sessions > 0:
		state = "lost"
	}
	if err := c.Client.Err(); err != nil && why == "" && state != "connected" {
		why = err.Error()
	}
	o := newObject()
	o.text("transport", c.wire.kind())
	o.integer("peer", c.Peer)
	o.text("state", state)
	o.text("why", why)
	o.integer("tick", int(c.Client.Tick()))
	o.integer("settled", int(tick))
	o.integer("entities", c.view.entities)
	o.text("sum", c.sum)
	o.object("own", c.view.ownStatus(c.Ship, c.Name, now))
	o.object("match", c.view.matchStatus(c.Ship))
	lamp := c.lamp.state(now)
	o.text("lamp", lamp)
	o.known("lampTick", float64(tick), lamp == "equal")
	o.known("equalAgo", now.Sub(c.lamp.equalAt).Seconds(), !c.lamp.equalAt.IsZero())
	o.known("silent", now.Sub(c.lamp.arrivedAt).Seconds(), !c.lamp.arrivedAt.IsZero())
	o.integer("compared", int(stats.HashesCompared))
	o.integer("diverged", int(stats.Diverged))
	o.known("delay", float64(shown.Delay.Milliseconds()), shown.Delay > 0)
	o.integer("starved", int(shown.Starved))
	o.integer("frames", int(shown.Frames))
	off := &c.view.errors
	o.known("ghostError", off.sum/float64(max(off.n, 1)), off.n > 0)
	o.truth("interpolation", !c.newest)
	o.truth("prediction", !c.Late)
	o.truth("ghosts", c.ghosts.wanted)
	o.text("coding", c.coding)
	o.number("sendRate", math.Round(60/float64(c.wish.Every)))
	o.integer("radius", int(c.wish.Radius))
	return o
}

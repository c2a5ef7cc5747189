package soak

import (
	"errors"
	"math"

	"github.com/mlange-42/arche/ecs"

	"github.com/arche-replicate/arche-replicate/replication"
)

// An issued is an input that a client gave for a tick.
type issued struct {
	command command
	at      uint64 // packed: who At mirrors
}

// giveInput sets the input for the tick that the client asks for.
func (c *conn) giveInput() {
	if c.ep.quiet && c.ended != nil {
		return
	}
	in := issued{command: command{
		X: int8(c.g.IntN(3) - 1), Y: int8(c.g.IntN(3) - 1), Aim: float32(c.g.between(-4, 4)), Serial: uint16(c.applies),
	}}
	if c.g.one(4) {
		in.command.At = c.someone()
		if id, ok := c.client.NetID(in.command.At); ok && !in.command.At.IsZero() {
			in.at = pack(id)
		}
	}
	tick := c.client.InputTick()
	err := replication.SetInput(c.client, tick, in.command)
	switch {
	case err == nil:
		c.inputs[uint32(tick)] = append(c.inputs[uint32(tick)], in)
	case !errors.Is(err, replication.ErrInputSet) && !errors.Is(err, replication.ErrNotConnected):
		c.ep.fail("SetInput: %v", err)
	}
}

// takeInput asks for the input of the tick to come.
func (c *conn) takeInput() {
	tick := c.host.server.Tick() + 1
	got, ok := replication.Input[command](c.peer, tick)
	c.ep.checks++
	if ok {
		c.inTime++
		if !c.wasGiven(uint32(tick), got) {
			c.ep.fail("the input for tick %d is %+v, which nobody gave: %+v", tick, got, c.inputs[uint32(tick)])
		}
		return
	}
	if got == (command{}) {
		return
	}
	for before := uint32(1); before <= 32; before++ {
		if c.wasGiven(uint32(tick-replication.Tick(before)), got) {
			return
		}
	}
	c.ep.fail("in place of an input for tick %d there is %+v, which nobody gave in 32 ticks", tick, got)
}

func (c *conn) wasGiven(tick uint32, got command) bool {
	for _, in := range c.inputs[tick] {
		w := in.command
		var at ecs.Entity
		if l := c.host.truth.lives[unpack(in.at)]; in.at != 0 && l != nil && !l.over && c.host.world.Alive(l.e) {
			at = l.e
		}
		off := math.Abs(math.Remainder(float64(got.Aim-w.Aim), 2*math.Pi))
		if got.X == w.X && got.Y == w.Y && got.Serial == w.Serial && off <= math.Pi/1024+1e-5 && got.At == at {
			return true
		}
	}
	return false
}

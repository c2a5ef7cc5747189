package replication

import (
	"errors"
	"reflect"

	"github.com/arche-replicate/arche-replicate/replication/internal/exclusive"
)

// Inputs are commands of a client for future ticks of the server. Each is repeated in every packet of inputs
// until the server has it or its tick is over, so that a lost packet costs a few bits and no time.

// ErrInputSet is the error of [SetInput] for a tick that already has its input, or is before one that has.
var ErrInputSet = errors.New("replication: the tick has its input already: inputs are set once for a tick, " +
	"in their order")

// OnInput sets the function that gives the client's command for a server tick; nil removes it. [Client.Frame] calls it
// for each tick that needs one, in their order, when the world is as it is to be drawn, any number of times a frame;
// after a pause, ticks that are too long ago are left out. The input is sent at once, and again until the server has
// it.
//
//	replication.OnInput(client, func(tick replication.Tick) Command {
//		command := Command{Turn: keys.turn}
//		if tick == client.InputTick() { // the frame's last one: what happens once goes into one input
//			command.Fire, clicked = clicked, false
//		}
//		return command
//	})
//
// fn may read the world and the client. What changes the client, such as [SendToServer], [Expect] and
// [Client.Reconnect], panics in it: do that after Frame. An input that takes more than 64 bytes, or has a text longer
// than its max, is not sent, and counts in [ClientStats].
//
// Panics if T is not the input type of the schema.
func OnInput[T any](c *Client, fn func(tick Tick) T) {
	defer c.guard().Leave(c.guard().Enter(exclusive.OnInput))
	c.schema.CheckInput(reflect.TypeFor[T]())
	c.messages.Inputs.Give = nil
	if fn != nil {
		c.messages.Inputs.Give = func(tick Tick) {
			input := func() T {
				defer c.calls.Leave(c.calls.Ask())
				return fn(tick)
			}()
			if setInput(c, tick, input) != nil {
				c.stats.InputsRefused++
			}
		}
	}
}

// SetInput sets the client's command for a server tick of your choice, see [Client.InputTick]. Set inputs in the order
// of their ticks; a tick that is left out has none, and [OnInput] is not asked for ticks up to the last one. After a
// step of 64 ticks or more, back or forward, inputs set before are no longer repeated.
//
// The errors are [ErrNotConnected] without a session or while InputTick is 0, one that wraps [ErrMessageTooLarge] if
// the input takes more than 64 bytes or a text is longer than its max, and [ErrInputSet] if tick is not after the last
// one that was set.
//
// Panics if T is not the input type of the schema.
func SetInput[T any](c *Client, tick Tick, input T) error {
	defer c.guard().Leave(c.guard().Enter(exclusive.SetInput))
	c.schema.CheckInput(reflect.TypeFor[T]())
	if !c.session.Open() || !c.messages.InputDelay.Known {
		return ErrNotConnected
	}
	return setInput(c, tick, input)
}

func setInput[T any](c *Client, tick Tick, input T) error {
	t := c.messages
	v := &t.Values[len(c.schema.Messages)]
	*v.Pointer.(*T) = input
	row, err := t.InputRow(v)
	if err != nil {
		return err
	}
	if t.Inputs.Set(tick) {
		return ErrInputSet
	}
	copy(t.Inputs.Add(tick, t.Shown), row)
	return nil
}

// Input returns a client's command for a tick, usually the next one, [Server.Tick] + 1, and true. If there is none, it
// returns the newest one of the 32 ticks before, or else the zero value, and false.
//
// Panics if T is not the input type of the schema.
func Input[T any](p *Peer, tick Tick) (T, bool) {
	defer p.guard().Leave(p.guard().Enter(exclusive.Input))
	s := p.server
	s.schema.CheckInput(reflect.TypeFor[T]())
	var input T
	if p.messages == nil {
		return input, false
	}
	row, exact := p.messages.Inputs.Find(tick)
	if row == nil {
		return input, false
	}
	v := &s.messages.Messenger.Values[len(s.schema.Messages)]
	s.messages.Messenger.Read(s.schema.Input, v, row)
	return *v.Pointer.(*T), exact
}

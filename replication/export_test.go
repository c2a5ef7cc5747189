package replication

import (
	"sync"
	"time"

	"github.com/mlange-42/arche/ecs"
)

// Advance and Apply are Frame in two parts, between which tests receive packets: time passes in the first one.
// Without it, Apply takes a tick.

var advanced sync.Map // clients

func (c *Client) Advance(dt time.Duration) {
	c.advance(dt)
	advanced.Store(c, true)
}

func (c *Client) Apply() error {
	if _, ok := advanced.LoadAndDelete(c); ok {
		return c.Frame(0)
	}
	rate := time.Duration(c.clock.Rate)
	return c.Frame((time.Second + rate - 1) / rate)
}

// What tests read as a number of ticks.

func (t Time) number() float64 { return float64(t.Tick) + float64(t.Fraction) }

func (c *Client) ServerTick() float64     { return c.ServerTime().number() }
func (c *Client) PredictionTick() float64 { return c.PredictionTime().number() }

func (c *Client) RoundTrip() float64  { return c.ticks(c.Stats().RoundTrip) }
func (c *Client) Jitter() float64     { return c.ticks(c.Stats().Jitter) }
func (c *Client) InputDelay() float64 { return c.ticks(c.Stats().InputDelay) }
func (c *Client) SendInterval() int   { return c.Stats().SendInterval }
func (p *Peer) RoundTrip() float64 {
	return p.Stats().RoundTrip.Seconds() * float64(p.server.opts.TickRate)
}

func (c *Client) ticks(d time.Duration) float64 { return d.Seconds() * float64(c.clock.Rate) }

func (c *Client) Coding() Coding { return sessionCoding(c.Stats().Compact) }
func (p *Peer) Coding() Coding   { return sessionCoding(p.Stats().Compact) }

func sessionCoding(compact bool) Coding {
	if compact {
		return Compact
	}
	return Packed
}

// ofTicks returns how long some ticks take, 60 a second.
func ofTicks(n int) time.Duration { return time.Duration(n) * time.Second / 60 }

func (c *Client) OnSpawn(fn func(e ecs.Entity))   { OnSpawn(c, fn) }
func (c *Client) OnDespawn(fn func(e ecs.Entity)) { OnDespawn(c, fn) }

func (c *Client) Connected() bool { return c.Status() == StatusConnected }

func (s *Server) Disconnect(p *Peer) { p.Disconnect(Reason{}) }

func ReplicatedID(w *ecs.World) ecs.ID { return ecs.ComponentID[Replicated](w) }
func MirroredID(w *ecs.World) ecs.ID   { return ecs.ComponentID[Replica](w) }

func WithWindow(ticks int) ServerOption         { return WithTuning(Tuning{Window: ticks}) }
func WithBaselineInterval(n int) ServerOption   { return WithTuning(Tuning{BaselineInterval: n}) }
func WithWorkers(n int) ServerOption            { return WithTuning(Tuning{Workers: n}) }
func WithStateHash(n int) ServerOption          { return WithTuning(Tuning{StateHash: n}) }
func WithSlotRest(d time.Duration) ServerOption { return WithTuning(Tuning{SlotRest: d}) }

// NewClientWith returns a client with its send function.
func NewClientWith(w *ecs.World, s *Schema, send func(packet []byte) error, opts ...ClientOption) *Client {
	c := NewClient(w, s, opts...)
	c.SetSend(send)
	return c
}

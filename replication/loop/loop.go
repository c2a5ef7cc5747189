// Package loop runs the steps of a game by the clock: a server's ticks at a
// fixed rate, and a client's frames with the time that each took.
//
//	for range loop.Ticks(loop.Interrupt(), 60) {
//		listener.Poll()
//		// systems run
//		server.Replicate()
//	}
//
// A loop ends when its context does, or by break. Time in which the machine
// sleeps counts, unless the system's clock stops then.
package loop

import (
	"context"
	"fmt"
	"iter"
	"os"
	"os/signal"
	"syscall"
	"time"
)

const defaultCatchUp = 5 // ticks

// An Option is a setting of Ticks or Frames.
type Option func(*settings)

type settings struct {
	catchUp  int
	overload func(skipped int)
	stats    *Stats
}

// Stats counts what a loop did. The loop writes it before each step, on its own
// goroutine.
type Stats struct {
	Steps     uint64 // ticks or frames that ran
	Late      uint64 // ticks that began one tick or more after their time
	Skipped   uint64 // ticks that never ran, because the loop was too far behind
	Overloads uint64 // how often ticks were skipped
}

// WithCatchUp sets how many late ticks run one after another without a pause, 5
// by default. A loop that is further behind skips all that are late, counts them
// in Stats.Skipped, and goes on in time: on a machine that is too slow, the game
// is in slow motion instead of falling behind forever. n must be positive.
func WithCatchUp(n int) Option {
	if n < 1 {
		panic(fmt.Sprintf("loop: WithCatchUp(%d): give a positive number of ticks", n))
	}
	return func(s *settings) { s.catchUp = n }
}

// WithOverload sets the function that is called when ticks are skipped, with
// their number, on the loop's goroutine, before the next tick. Frames never
// calls it.
func WithOverload(fn func(skipped int)) Option {
	if fn == nil {
		panic("loop: WithOverload: the function is nil; leave the option out to ignore overload")
	}
	return func(s *settings) { s.overload = fn }
}

// WithStats lets the loop count in stats. Read it on the loop's goroutine.
func WithStats(stats *Stats) Option {
	if stats == nil {
		panic("loop: WithStats: the stats are nil; pass the address of a Stats")
	}
	return func(s *settings) { s.stats = stats }
}

// Ticks yields the numbers of ticks from 0, perSecond times a second, the first
// at once. The time of tick n is n/perSecond after the start, so no error adds
// up. Ticks that are late run without a pause, at most as many as
// WithCatchUp allows. Skipped ticks get no number. It panics if perSecond isn't
// between 1 and 1,000,000.
func Ticks(ctx context.Context, perSecond int, opts ...Option) iter.Seq[int] {
	s := apply(ctx, "Ticks", perSecond, opts)
	return func(yield func(int) bool) { s.ticks(ctx, perSecond, yield) }
}

// Frames yields the time since the last frame, at most perSecond times a second:
// what Client.Frame takes. The first frame comes at once, with 0. Frames that are
// late aren't repeated: the next one is longer. It panics if perSecond isn't
// between 1 and 1,000,000.
//
// It is for programs without a screen to wait for. Those with one, and pages in a
// browser, call Client.Frame when the screen is redrawn.
func Frames(ctx context.Context, perSecond int, opts ...Option) iter.Seq[time.Duration] {
	s := apply(ctx, "Frames", perSecond, opts)
	return func(yield func(time.Duration) bool) { s.frames(ctx, perSecond, yield) }
}

// Interrupt returns a context that ends when somebody stops the program, by
// Ctrl-C or SIGTERM: then close servers and clients, so that the other ends
// know. The next Ctrl-C kills the program, as if Interrupt had not been called.
func Interrupt() context.Context {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	context.AfterFunc(ctx, stop)
	return ctx
}

func apply(ctx context.Context, name string, perSecond int, opts []Option) settings {
	if ctx == nil {
		panic("loop: " + name + ": the context is nil; use context.Background() for a loop that ends by break alone")
	}
	if perSecond < 1 || perSecond > 1_000_000 {
		panic(fmt.Sprintf("loop: %s: %d per second; give a rate from 1 to 1,000,000", name, perSecond))
	}
	s := settings{catchUp: defaultCatchUp, stats: new(Stats), overload: func(int) {}}
	for _, opt := range opts {
		if opt == nil {
			panic("loop: " + name + ": an option is nil; leave it out")
		}
		opt(&s)
	}
	return s
}

func (s *settings) ticks(ctx context.Context, perSecond int, yield func(int) bool) {
	rate := int64(perSecond)
	period := time.Second / time.Duration(rate)
	c := newClock()
	defer c.timer.Stop()
	scheduled := int64(0) // ticks whose time has come: they ran or were skipped
	for n := 0; ; n++ {
		at := timeOf(scheduled, rate)
		now, ok := c.wait(ctx, at)
		if !ok {
			return
		}
		if behind := now - at; behind >= period {
			s.stats.Late++
			if late := int64(behind / period); late > int64(s.catchUp) {
				s.stats.Skipped += uint64(late)
				s.stats.Overloads++
				scheduled += late
				s.overload(int(late))
			}
		}
		scheduled++
		s.stats.Steps++
		if !yield(n) {
			return
		}
	}
}

func (s *settings) frames(ctx context.Context, perSecond int, yield func(time.Duration) bool) {
	period := time.Second / time.Duration(perSecond)
	c := newClock()
	defer c.timer.Stop()
	var last, next time.Duration
	for first := true; ; first = false {
		now, ok := c.wait(ctx, next)
		if !ok {
			return
		}
		dt := now - last
		if first {
			dt = 0
		}
		last = now
		if next += period; next <= now { // late: begin anew, never run frames in a row
			next = now + period
		}
		s.stats.Steps++
		if !yield(dt) {
			return
		}
	}
}

// timeOf is n/rate seconds, without an overflow for any n that a loop reaches.
func timeOf(n, rate int64) time.Duration {
	return time.Duration(n/rate)*time.Second + time.Duration(n%rate)*time.Second/time.Duration(rate)
}

// clock is the time since a loop began. It never goes back: time.Since reads the monotonic clock.
type clock struct {
	start time.Time
	timer *time.Timer
}

func newClock() *clock {
	timer := time.NewTimer(time.Hour)
	timer.Stop()
	return &clock{time.Now(), timer}
}

// wait waits until a time and returns the present one, or false if the context has ended.
func (c *clock) wait(ctx context.Context, until time.Duration) (now time.Duration, ok bool) {
	for {
		if ctx.Err() != nil {
			return 0, false
		}
		if now = time.Since(c.start); now >= until {
			return now, true
		}
		c.timer.Reset(until - now)
		select {
		case <-c.timer.C:
		case <-ctx.Done():
		}
	}
}

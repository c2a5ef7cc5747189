// Package loop runs the steps of a game by the clock: a server's ticks at a
// fixed rate, and a client's frames with the time that each took.
//
//	for range loop.Ticks(ctx, 60) {
//		listener.Poll()
//		// systems run
//		server.Replicate()
//	}
//
// A loop ends when its context does, or by break.
package loop

import (
	"context"
	"fmt"
	"iter"
	"time"
)

// DefaultCatchUp is how many late ticks Ticks runs without a pause, see
// WithCatchUp.
const DefaultCatchUp = 5

// Clock is the time that a loop goes by.
type Clock interface {
	// Now returns the time since any fixed moment. It must not go back.
	Now() time.Duration
	// Sleep waits for d, which is positive, or until ctx ends.
	Sleep(ctx context.Context, d time.Duration)
}

// An Option is a setting of Ticks or Frames.
type Option func(*settings)

type settings struct {
	clock    Clock
	catchUp  int
	overload func(Overload)
	stats    *Stats
}

// Overload is what a loop that can't keep its rate reports.
type Overload struct {
	// Skipped is the number of ticks that were left out now.
	Skipped int
	// Behind is how late the loop was before it left them out.
	Behind time.Duration
}

// Stats counts what a loop did. The loop writes it before each step, on its own
// goroutine.
type Stats struct {
	Steps     uint64 // ticks or frames that ran
	Late      uint64 // ticks that began one tick or more after their time
	Skipped   uint64 // ticks that never ran, for the loop was too far behind
	Overloads uint64 // how often ticks were skipped
}

// WithCatchUp sets how many late ticks run one after another without a pause, 5
// by default. A loop that is further behind skips the others, counts them in
// Stats.Skipped, and goes on in time: a machine that is too slow becomes slow
// motion, instead of falling behind for ever. n must be positive.
func WithCatchUp(n int) Option {
	if n < 1 {
		panic(fmt.Sprintf("loop: WithCatchUp(%d): give a positive number of ticks", n))
	}
	return func(s *settings) { s.catchUp = n }
}

// WithOverload sets the function that is called when ticks are skipped, on the
// loop's goroutine, before the next tick. Frames never calls it.
func WithOverload(fn func(Overload)) Option {
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

// WithClock replaces the system's clock, for tests.
func WithClock(c Clock) Option {
	if c == nil {
		panic("loop: WithClock: the clock is nil; leave the option out to use the system's")
	}
	return func(s *settings) { s.clock = c }
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
func Frames(ctx context.Context, perSecond int, opts ...Option) iter.Seq[time.Duration] {
	s := apply(ctx, "Frames", perSecond, opts)
	return func(yield func(time.Duration) bool) { s.frames(ctx, perSecond, yield) }
}

func apply(ctx context.Context, name string, perSecond int, opts []Option) settings {
	if ctx == nil {
		panic("loop: " + name + ": the context is nil; use context.Background() for a loop that ends by break alone")
	}
	if perSecond < 1 || perSecond > 1_000_000 {
		panic(fmt.Sprintf("loop: %s: %d per second; give a rate from 1 to 1,000,000", name, perSecond))
	}
	s := settings{catchUp: DefaultCatchUp, stats: new(Stats), overload: func(Overload) {}}
	for _, opt := range opts {
		if opt == nil {
			panic("loop: " + name + ": an option is nil; leave it out")
		}
		opt(&s)
	}
	if s.clock == nil {
		s.clock = systemClock{start: time.Now()}
	}
	return s
}

func (s *settings) ticks(ctx context.Context, perSecond int, yield func(int) bool) {
	rate := int64(perSecond)
	period := time.Second / time.Duration(rate)
	start := s.clock.Now()
	scheduled := int64(0) // ticks of the clock that have run or were skipped
	for n := 0; ; n++ {
		at := start + timeOf(scheduled, rate)
		for now := s.clock.Now(); now < at; now = s.clock.Now() {
			if ctx.Err() != nil {
				return
			}
			s.clock.Sleep(ctx, at-now)
		}
		if ctx.Err() != nil {
			return
		}
		if behind := s.clock.Now() - at; behind >= period {
			s.stats.Late++
			late := int64(behind / period)
			if skip := late - int64(s.catchUp); skip > 0 {
				s.stats.Skipped += uint64(skip)
				s.stats.Overloads++
				scheduled += skip
				s.overload(Overload{Skipped: int(skip), Behind: behind})
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
	last := s.clock.Now()
	next := last
	for {
		now := s.clock.Now()
		for ; now < next; now = s.clock.Now() {
			if ctx.Err() != nil {
				return
			}
			s.clock.Sleep(ctx, next-now)
		}
		if ctx.Err() != nil {
			return
		}
		dt := now - last
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

type systemClock struct{ start time.Time }

func (c systemClock) Now() time.Duration { return time.Since(c.start) }

func (c systemClock) Sleep(ctx context.Context, d time.Duration) {
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-timer.C:
	case <-ctx.Done():
	}
}

package loop_test

import (
	"context"
	"fmt"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/arche-replicate/arche-replicate/replication/loop"
)

// clock is a clock whose time passes in Sleep, and where a test adds to it.
type clock struct{ now time.Duration }

func (c *clock) Now() time.Duration                       { return c.now }
func (c *clock) Sleep(_ context.Context, d time.Duration) { c.now += d }

func TestTicksKeepTheirRate(t *testing.T) {
	c := &clock{now: time.Hour}
	for n := range loop.Ticks(context.Background(), 60, loop.WithClock(c)) {
		require.Equal(t, time.Hour+time.Duration(n)*time.Second/60, c.now, "tick %d", n)
		if n == 60*3600 {
			break
		}
		c.now += 7 * time.Millisecond // the work
	}
	require.Equal(t, 2*time.Hour, c.now)
}

func TestLateTicksCatchUp(t *testing.T) {
	c, stats := &clock{}, loop.Stats{}
	for n := range loop.Ticks(context.Background(), 10, loop.WithClock(c), loop.WithStats(&stats)) {
		if n == 3 {
			c.now += 450 * time.Millisecond
		}
		if n == 10 {
			break
		}
	}
	require.Equal(t, time.Second, c.now)
	require.Equal(t, loop.Stats{Steps: 11, Late: 3}, stats)
}

func TestOverloadSkipsTicks(t *testing.T) {
	c, stats := &clock{}, loop.Stats{}
	var overloads []loop.Overload
	ticks := loop.Ticks(context.Background(), 10, loop.WithClock(c), loop.WithStats(&stats), loop.WithCatchUp(2),
		loop.WithOverload(func(o loop.Overload) { overloads = append(overloads, o) }))
	var at []time.Duration
	for n := range ticks {
		at = append(at, c.now)
		if n == 0 {
			c.now += 10 * time.Second // a pause of the process
		}
		if n == 4 {
			break
		}
	}
	require.Equal(t, []loop.Overload{{Skipped: 97, Behind: 9900 * time.Millisecond}}, overloads)
	require.Equal(t, []time.Duration{
		0, 10 * time.Second, 10 * time.Second, 10 * time.Second, 10100 * time.Millisecond,
	}, at, "two late ticks and the one of now in a row, then in time")
	require.Equal(t, loop.Stats{Steps: 5, Late: 2, Skipped: 97, Overloads: 1}, stats)
}

func TestASlowMachineIsBounded(t *testing.T) {
	c, stats := &clock{}, loop.Stats{}
	for n := range loop.Ticks(context.Background(), 10, loop.WithClock(c), loop.WithStats(&stats)) {
		c.now += 200 * time.Millisecond // each tick takes two
		if n == 999 {
			break
		}
	}
	require.InDelta(t, 1000, stats.Skipped, 10, "half of the ticks of the clock")
}

func TestFramesYieldTheTimeThatPassed(t *testing.T) {
	c := &clock{now: time.Hour}
	var times []time.Duration
	for dt := range loop.Frames(context.Background(), 100, loop.WithClock(c)) {
		times = append(times, dt)
		switch len(times) {
		case 2:
			c.now += 35 * time.Millisecond
		case 5:
			require.Equal(t, []time.Duration{0, 10e6, 35e6, 10e6, 10e6}, times)
			return
		}
	}
}

func TestAContextEndsALoop(t *testing.T) {
	for name, run := range map[string]func(context.Context, *clock, func()){
		"Ticks": func(ctx context.Context, c *clock, step func()) {
			for range loop.Ticks(ctx, 10, loop.WithClock(c)) {
				step()
			}
		},
		"Frames": func(ctx context.Context, c *clock, step func()) {
			for range loop.Frames(ctx, 10, loop.WithClock(c)) {
				step()
			}
		},
	} {
		t.Run(name, func(t *testing.T) {
			ctx, cancel := context.WithCancel(context.Background())
			steps := 0
			run(ctx, &clock{}, func() {
				if steps++; steps == 3 {
					cancel()
				}
			})
			require.Equal(t, 3, steps)
			run(ctx, &clock{}, func() { t.Fatal("a step after the context ended") })
		})
	}
}

func TestTheSystemsClockWakesForTheContext(t *testing.T) {
	ctx, cancel := context.WithCancel(context.Background())
	time.AfterFunc(time.Millisecond, cancel)
	steps := 0
	for range loop.Ticks(ctx, 1) {
		steps++
	}
	require.Equal(t, 1, steps)
}

func TestMisuse(t *testing.T) {
	require.PanicsWithValue(t, "loop: Ticks: 0 per second; give a rate from 1 to 1,000,000",
		func() { loop.Ticks(context.Background(), 0) })
	require.Panics(t, func() { loop.WithCatchUp(0) })
	require.Panics(t, func() { loop.WithClock(nil) })
	require.Panics(t, func() { loop.Frames(context.Background(), 60, nil) })
}

func TestStepsAllocateNothing(t *testing.T) {
	c := &clock{}
	allocations := testing.AllocsPerRun(1, func() {
		for n := range loop.Ticks(context.Background(), 60, loop.WithClock(c)) {
			if n == 10_000 {
				break
			}
		}
	})
	require.Less(t, allocations, 20.0)
}

func ExampleTicks() {
	ctx, cancel := context.WithCancel(context.Background())
	defer cancel()
	for n := range loop.Ticks(ctx, 100) {
		fmt.Println("tick", n) // receive, systems, server.Replicate()
		if n == 2 {
			cancel()
		}
	}
	// Output:
	// tick 0
	// tick 1
	// tick 2
}

func ExampleFrames() {
	frames := 0
	for dt := range loop.Frames(context.Background(), 144) {
		_ = dt // receive, client.Frame(dt), draw
		if frames++; frames == 3 {
			break
		}
	}
	fmt.Println(frames, "frames")
	// Output: 3 frames
}

package loop_test

import (
	"context"
	"fmt"
	"os"
	"os/exec"
	"runtime"
	"strings"
	"syscall"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/arche-replicate/arche-replicate/replication/loop"
)

// In a bubble of package synctest, time passes in Sleep and in the loop's pauses only.

func TestTicksKeepTheirRate(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		start, stats := time.Now(), loop.Stats{}
		for n := range loop.Ticks(context.Background(), 60, loop.WithStats(&stats)) {
			require.Equal(t, time.Duration(n)*time.Second/60, time.Since(start), "tick %d", n)
			if n == 60*3600 {
				break
			}
			time.Sleep(7 * time.Millisecond) // the work
		}
		require.Equal(t, time.Hour, time.Since(start))
		require.Equal(t, loop.Stats{Steps: 60*3600 + 1}, stats)
	})
}

func TestLateTicksCatchUp(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		start, stats := time.Now(), loop.Stats{}
		for n := range loop.Ticks(context.Background(), 10, loop.WithStats(&stats)) {
			if n == 3 {
				time.Sleep(450 * time.Millisecond)
			}
			if n == 10 {
				break
			}
		}
		require.Equal(t, time.Second, time.Since(start))
		require.Equal(t, loop.Stats{Steps: 11, Late: 3}, stats)
	})
}

// A pause of the process, or a laptop that slept.
func TestOverloadSkipsTicks(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		start, stats := time.Now(), loop.Stats{}
		var skipped []int
		ticks := loop.Ticks(context.Background(), 10, loop.WithStats(&stats), loop.WithCatchUp(2),
			loop.WithOverload(func(n int) { skipped = append(skipped, n) }))
		var at []time.Duration
		for n := range ticks {
			at = append(at, time.Since(start))
			switch n {
			case 0:
				time.Sleep(8*time.Hour + 50*time.Millisecond)
			case 2:
				time.Sleep(250 * time.Millisecond)
			}
			if n == 6 {
				break
			}
		}
		const h = 8 * time.Hour
		require.Equal(t, []time.Duration{
			0, h + 50e6, h + 100e6, h + 350e6, h + 350e6, h + 400e6, h + 500e6,
		}, at, "in time after the pause, and two late ticks in a row")
		require.Equal(t, []int{8*36000 - 1}, skipped)
		require.Equal(t, loop.Stats{Steps: 7, Late: 2, Skipped: 8*36000 - 1, Overloads: 1}, stats)
	})
}

func TestASlowMachineIsBounded(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		stats := loop.Stats{}
		for n := range loop.Ticks(context.Background(), 10, loop.WithStats(&stats)) {
			time.Sleep(200 * time.Millisecond) // each tick takes two
			if n == 999 {
				break
			}
		}
		require.InDelta(t, 1000, stats.Skipped, 10, "half of the ticks of the clock")
		require.InDelta(t, 1000/6, stats.Overloads, 2, "not a report in every tick")
	})
}

func TestFramesYieldTheTimeThatPassed(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var times []time.Duration
		for dt := range loop.Frames(context.Background(), 100) {
			times = append(times, dt)
			switch len(times) {
			case 2:
				time.Sleep(35 * time.Millisecond)
			case 5:
				require.Equal(t, []time.Duration{0, 10e6, 35e6, 10e6, 10e6}, times)
				return
			}
		}
	})
}

func TestAContextEndsALoop(t *testing.T) {
	for name, run := range map[string]func(context.Context, func()){
		"Ticks": func(ctx context.Context, step func()) {
			for range loop.Ticks(ctx, 10) {
				step()
			}
		},
		"Frames": func(ctx context.Context, step func()) {
			for range loop.Frames(ctx, 10) {
				step()
			}
		},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				ctx, cancel := context.WithCancel(context.Background())
				steps, start := 0, time.Now()
				run(ctx, func() {
					if steps++; steps == 3 {
						cancel()
					}
				})
				require.Equal(t, 3, steps)
				run(ctx, func() { t.Fatal("a step after the context ended") })

				ctx, cancel = context.WithTimeout(context.Background(), 50*time.Millisecond)
				defer cancel()
				run(ctx, func() {})
				require.Equal(t, 250*time.Millisecond, time.Since(start), "it does not wait for the next step")
			})
		})
	}
}

// By the real clock: never early, and not often late, even on a busy machine.
func TestTheSystemsClock(t *testing.T) {
	start, late := time.Now(), 0
	for n := range loop.Ticks(context.Background(), 100, loop.WithCatchUp(1000)) {
		at := time.Since(start) - time.Duration(n)*10*time.Millisecond
		require.Positive(t, at, "tick %d is early", n)
		if at > 20*time.Millisecond {
			late++
		}
		if n == 50 {
			break
		}
	}
	require.Less(t, late, 25)

	start = time.Now()
	var sum time.Duration
	frames := 0
	for dt := range loop.Frames(context.Background(), 100) {
		sum += dt
		if frames++; frames == 20 {
			break
		}
	}
	require.InDelta(t, time.Since(start), sum, 20e6)
	require.GreaterOrEqual(t, sum, 190*time.Millisecond-time.Millisecond)
}

func TestMisuse(t *testing.T) {
	require.PanicsWithValue(t, "loop: Ticks: 0 per second; give a rate from 1 to 1,000,000",
		func() { loop.Ticks(context.Background(), 0) })
	require.Panics(t, func() { loop.Ticks(nil, 60) }) //nolint:staticcheck // that is the mistake
	require.Panics(t, func() { loop.WithCatchUp(0) })
	require.Panics(t, func() { loop.WithOverload(nil) })
	require.Panics(t, func() { loop.WithStats(nil) })
	require.Panics(t, func() { loop.Frames(context.Background(), 60, nil) })
}

func TestStepsAllocateNothing(t *testing.T) {
	if runtime.GOOS == "js" {
		t.Skip("there, a timer allocates")
	}
	require.Less(t, testing.AllocsPerRun(1, func() {
		for n := range loop.Ticks(context.Background(), 10_000) {
			if n == 1000 {
				break
			}
		}
	}), 50.0)
}

// TestInterrupt runs this test again as a program that is interrupted twice.
func TestInterrupt(t *testing.T) {
	if os.Getenv("LOOP_INTERRUPT") != "" {
		for range loop.Ticks(loop.Interrupt(), 100) {
			interrupt(t)
		}
		fmt.Println("goodbye")
		time.Sleep(100 * time.Millisecond) // the context's goroutine stops to listen
		interrupt(t)
		time.Sleep(10 * time.Second)
		fmt.Println("still here")
		return
	}
	if runtime.GOOS == "windows" || runtime.GOOS == "js" {
		t.Skip("a process can't send itself an interrupt here")
	}
	cmd := exec.Command(os.Args[0], "-test.run=^TestInterrupt$", "-test.v")
	cmd.Env = append(os.Environ(), "LOOP_INTERRUPT=1")
	out, err := cmd.CombinedOutput()
	require.Error(t, err)
	require.Equal(t, 1, strings.Count(string(out), "goodbye"), "%s", out)
	require.NotContains(t, string(out), "still here")
	require.Contains(t, err.Error(), "interrupt")
}

func interrupt(t *testing.T) {
	self, err := os.FindProcess(os.Getpid())
	require.NoError(t, err)
	require.NoError(t, self.Signal(syscall.SIGINT))
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

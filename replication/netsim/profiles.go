package netsim

import (
	"fmt"
	"math"
	"strings"
	"time"
)

// A profile is a named Config for one direction at a rate of ticks per second. The figures are
// round numbers of our own choice that cover what players meet; they are not measurements.

// LAN is a cable across the room: 1 ms, nothing lost.
func LAN(rate float64) Config {
	return Config{
		Latency: Ticks(time.Millisecond, rate),
		Jitter:  Ticks(time.Millisecond/2, rate),
	}
}

// Good is a wired line to a server nearby: 15 ms, 0.1 % lost.
func Good(rate float64) Config {
	return Config{
		Latency: Ticks(15*time.Millisecond, rate),
		Jitter:  Ticks(2*time.Millisecond, rate),
		Loss:    0.001,
	}
}

// Average is home Wi-Fi to a server on the same continent: 40 ms, 1 % lost.
func Average(rate float64) Config {
	return Config{
		Latency:   Ticks(40*time.Millisecond, rate),
		Jitter:    Ticks(8*time.Millisecond, rate),
		Loss:      0.01,
		Duplicate: 0.001,
		Reorder:   0.005,
		ReorderBy: holdBack(20*time.Millisecond, rate),
		Bandwidth: BytesPerTick(10e6, rate),
	}
}

// Poor is busy Wi-Fi or a phone indoors: 90 ms, 5 % lost, an outage of 200 ms
// every 20 seconds, 1 Mbit/s.
func Poor(rate float64) Config {
	return Config{
		Latency:   Ticks(90*time.Millisecond, rate),
		Jitter:    Ticks(30*time.Millisecond, rate),
		Loss:      0.05,
		Burst:     outages(20*time.Second, 200*time.Millisecond, rate),
		Duplicate: 0.01,
		Reorder:   0.02,
		ReorderBy: holdBack(50*time.Millisecond, rate),
		Bandwidth: BytesPerTick(1e6, rate),
	}
}

// Awful is a phone on a train: 200 ms, 15 % lost, an outage of half a second
// every 10 seconds, 256 kbit/s, and some packets arrive damaged.
func Awful(rate float64) Config {
	return Config{
		Latency:    Ticks(200*time.Millisecond, rate),
		Jitter:     Ticks(80*time.Millisecond, rate),
		Loss:       0.15,
		Burst:      outages(10*time.Second, 500*time.Millisecond, rate),
		Duplicate:  0.03,
		Reorder:    0.1,
		ReorderBy:  holdBack(150*time.Millisecond, rate),
		Corrupt:    0.001,
		Bandwidth:  BytesPerTick(256e3, rate),
		QueueLimit: 32 << 10,
	}
}

// Hostile is not a real network but a test bench: a quarter lost, a quarter duplicated, a third
// reordered, a tenth damaged, outages.
func Hostile(rate float64) Config {
	return Config{
		Latency:   Ticks(100*time.Millisecond, rate),
		Jitter:    Ticks(100*time.Millisecond, rate),
		Loss:      0.25,
		Burst:     outages(5*time.Second, 500*time.Millisecond, rate),
		Duplicate: 0.25,
		Reorder:   0.33,
		ReorderBy: holdBack(time.Second, rate),
		Corrupt:   0.1,
	}
}

// ProfileNames returns the names that [Profile] knows, from the best to the worst.
func ProfileNames() []string {
	return []string{"perfect", "lan", "good", "average", "poor", "awful", "hostile"}
}

// Profile returns a profile by its name, as for a command-line flag; perfect is the zero [Config].
//
// Panics if rate is not a positive finite number.
func Profile(name string, rate float64) (Config, error) {
	checkRate(rate)
	switch name {
	case "perfect":
		return Config{}, nil
	case "lan":
		return LAN(rate), nil
	case "good":
		return Good(rate), nil
	case "average":
		return Average(rate), nil
	case "poor":
		return Poor(rate), nil
	case "awful":
		return Awful(rate), nil
	case "hostile":
		return Hostile(rate), nil
	}
	return Config{}, fmt.Errorf("netsim: no profile is named %q; there are %s", name, strings.Join(ProfileNames(),
		", "))
}

// outages returns outages of a mean length with a mean time between them.
func outages(every, length time.Duration, rate float64) Burst {
	return Burst{
		Start:  min(1/Ticks(every, rate), 1),
		Length: max(Ticks(length, rate), 1),
	}
}

// holdBack converts a duration to an integer number of ticks for ReorderBy.
func holdBack(d time.Duration, rate float64) int {
	return max(int(math.Round(Ticks(d, rate))), 1)
}

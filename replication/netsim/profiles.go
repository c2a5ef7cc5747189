package netsim

import (
	"fmt"
	"math"
	"strings"
	"time"
)

// A profile is a named Config for one direction. The figures are round numbers of our own choice that cover what
// players meet; they are not measurements.
type profile struct {
	name string
	of   func(rate float64) Config // at a rate of ticks per second
}

// profiles go from the best to the worst.
var profiles = []profile{
	{"perfect", func(float64) Config { return Config{} }},
	{"lan", func(rate float64) Config {
		return Config{
			Latency: Ticks(time.Millisecond, rate),
			Jitter:  Ticks(time.Millisecond/2, rate),
		}
	}},
	{"good", func(rate float64) Config {
		return Config{
			Latency: Ticks(15*time.Millisecond, rate),
			Jitter:  Ticks(2*time.Millisecond, rate),
			Loss:    0.001,
		}
	}},
	{"home", func(rate float64) Config {
		return Config{
			Latency:   Ticks(40*time.Millisecond, rate),
			Jitter:    Ticks(8*time.Millisecond, rate),
			Loss:      0.01,
			Duplicate: 0.001,
			Reorder:   0.005,
			ReorderBy: holdBack(20*time.Millisecond, rate),
			Bandwidth: BytesPerTick(10e6, rate),
		}
	}},
	{"mobile", func(rate float64) Config {
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
	}},
	{"awful", func(rate float64) Config {
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
	}},
	{"hostile", func(rate float64) Config {
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
	}},
}

// ProfileNames returns the names that [Profile] takes, from the best to the worst.
func ProfileNames() (names []string) {
	for _, p := range profiles {
		names = append(names, p.name)
	}
	return names
}

// Profile returns a configuration of one direction by its name, as for a command-line flag, at a rate of ticks per
// second. In all but the first, packets are also delayed at random.
//
//	perfect  the zero [Config]
//	lan      a cable across the room: 1 ms, nothing lost
//	good     a wired line to a server nearby: 15 ms, 0.1 % lost
//	home     home Wi-Fi to a server on the same continent: 40 ms, 1 % lost
//	mobile   busy Wi-Fi or a phone indoors: 90 ms, 5 % lost, an outage of 200 ms every 20 seconds, 1 Mbit/s
//	awful    a phone on a train: 200 ms, 15 % lost, an outage of half a second every 10 seconds, 256 kbit/s, and some
//	         packets arrive damaged
//	hostile  a test bench: a quarter lost, a quarter duplicated, a third reordered, a tenth damaged, outages
//
// Panics if rate is not a positive finite number.
func Profile(name string, rate float64) (Config, error) {
	checkRate(rate)
	for _, p := range profiles {
		if p.name == name {
			return p.of(rate), nil
		}
	}
	names := strings.Join(ProfileNames(), ", ")
	return Config{}, fmt.Errorf("netsim: no profile is named %q; there are %s", name, names)
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

package main

import (
	"fmt"
	"iter"

	"github.com/mlange-42/arche/ecs"

	"github.com/arche-replicate/arche-replicate/examples/arena/game"
	"github.com/arche-replicate/arche-replicate/replication"
)

// cost is what replication without deltas would send a client each time, in bytes, and the age of the
// baselines in use. Clients elsewhere know the second only.
type cost struct {
	Raw    int     // all entities as codes of fixed width, in packets
	JSON   int     // all entities in encoding/json, in packets; measured once a second
	Age    float64 // ticks from the baseline to an update, the mean of the latest second; 0 if unknown
	second int     // of the latest measurement of JSON

	raw, json, sends float64 // sums, and how often state was sent
}

// bytesPerSecond returns the means since the beginning.
func (c *cost) bytesPerSecond(sendRate int) (raw, json float64) {
	scale := float64(sendRate) / max(c.sends, 1)
	return tenth(c.raw * scale), tenth(c.json * scale)
}

// oldestCounted is the age from which on all baselines are counted together, see
// [replication.ServerStats].
const oldestCounted = 32

// Of packets of state: the least that each has beside entities, a checksum and the shortest header, and how long it is.
const (
	headerBytes = 6
	packetBytes = 1200
)

// inPackets adds to a state what its packets take.
func inPackets(bytes int) int {
	const room = packetBytes - headerBytes
	return bytes + headerBytes*max(1, (bytes+room-1)/room)
}

// accountant keeps the cost up to date.
type accountant struct {
	cost
	ages [oldestCounted + 1]uint64
}

// update measures the cost at a tick at which clients are sent state.
func (a *accountant) update(m *match) {
	stats := m.server.Stats()
	a.Raw = inPackets((stats.RawBits + 7) / 8)
	defer func() {
		a.raw, a.json, a.sends = a.raw+float64(a.Raw), a.json+float64(a.JSON), a.sends+1
	}()
	second := m.ticks / m.c.tickRate
	if a.JSON > 0 && second == a.second {
		return
	}
	a.second = second
	a.JSON = inPackets(jsonBytes(m.reader, m.entities()))
	count, sum := uint64(0), uint64(0)
	for age := 1; age < len(a.ages); age++ { // without entries that had no baseline
		n := stats.BaselineAges[age] - a.ages[age]
		count += n
		sum += n * uint64(age)
	}
	a.ages = stats.BaselineAges
	a.Age = 0
	if count > 0 {
		a.Age = float64(sum) / float64(count)
	}
}

// jsonBytes returns the length of a JSON array of entities.
func jsonBytes(r *game.Reader, entities iter.Seq2[replication.NetID, ecs.Entity]) int {
	total := len("[]")
	for id, e := range entities {
		text, err := r.JSON(e, id)
		if err != nil {
			panic(fmt.Sprintf("arena: an entity has no JSON: %v", err)) // a new component
		}
		total += len(text) + len(",")
	}
	return max(total-len(","), len("[]"))
}

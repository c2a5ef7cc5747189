package main

import (
	"fmt"

	"github.com/mlange-42/arche/ecs"

	"github.com/arche-replicate/arche-replicate/replication"
)

// cost is what only the server knows: what replication without deltas would cost now, in bytes
// that a client would be sent each time, and how old the states are that the deltas refer to.
type cost struct {
	Raw  int     // all entities in codes of fixed width
	JSON int     // all entities as encoding/json writes them, measured once a second
	Age  float64 // ticks from a baseline to what is sent against it, the mean of the latest second; 0 if unknown
}

// oldestCounted is from which age on all baselines are counted as one, see
// [replication.ServerStats].
const oldestCounted = 32

// accountant keeps the cost up to date.
type accountant struct {
	cost
	measured int // tick of the latest measurement
	ages     [oldestCounted + 1]uint64
}

// update looks what it is now, at a tick at which clients are sent something.
func (a *accountant) update(h *host) {
	stats := h.server.Stats()
	a.Raw = (stats.RawBits + 7) / 8
	if a.JSON > 0 && h.ticks-a.measured < h.tickRate {
		return
	}
	a.measured = h.ticks
	a.JSON = h.jsonBytes()
	count, sum := uint64(0), uint64(0)
	for age := 1; age < len(a.ages); age++ { // without those that had no baseline
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

// jsonBytes is how long an array of all entities that clients see is in JSON.
func (h *host) jsonBytes() int {
	total := len("[]")
	filter := ecs.All(replication.ReplicatedID(&h.game.World))
	query := h.game.World.Query(&filter)
	for query.Next() {
		id, ok := h.server.NetID(query.Entity())
		if !ok {
			continue
		}
		text, err := h.reader.json(query.Entity(), id)
		if err != nil {
			panic(fmt.Sprintf("arena: an entity of which there is no JSON: %v", err)) // a component that is new
		}
		total += len(text) + len(",")
	}
	return max(total-len(","), len("[]"))
}

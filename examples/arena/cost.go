package main

import (
	"fmt"

	"github.com/mlange-42/arche/ecs"

	"github.com/arche-replicate/arche-replicate/replication"
)

// cost is known only to the server: what replication without deltas would send a client each time,
// in bytes, and the age of the baselines in use.
type cost struct {
	Raw  int     // all entities as codes of fixed width
	JSON int     // all entities in encoding/json, measured once a second
	Age  float64 // ticks from the baseline to an update, the mean of the latest second; 0 if unknown
}

// oldestCounted is the age from which on all baselines are counted together, see
// [replication.ServerStats].
const oldestCounted = 32

// accountant keeps the cost up to date.
type accountant struct {
	cost
	measured int // tick of the latest measurement
	ages     [oldestCounted + 1]uint64
}

// update measures the cost at a tick at which clients are sent state.
func (a *accountant) update(h *host) {
	stats := h.server.Stats()
	a.Raw = (stats.RawBits + 7) / 8
	if a.JSON > 0 && h.ticks-a.measured < h.tickRate {
		return
	}
	a.measured = h.ticks
	a.JSON = h.jsonBytes()
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

// jsonBytes returns the length of a JSON array of all entities that clients see.
func (h *host) jsonBytes() int {
	total := len("[]")
	filter := ecs.All(ecs.ComponentID[replication.Replicated](&h.game.World))
	query := h.game.World.Query(&filter)
	for query.Next() {
		id, ok := h.server.NetID(query.Entity())
		if !ok {
			continue
		}
		text, err := h.reader.json(query.Entity(), id)
		if err != nil {
			panic(fmt.Sprintf("arena: an entity has no JSON: %v", err)) // a new component
		}
		total += len(text) + len(",")
	}
	return max(total-len(","), len("[]"))
}

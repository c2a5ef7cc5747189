package replication_test

import (
	"fmt"

	"github.com/arche-replicate/arche-replicate/replication"
)

// A Quest keeps what the server needs. Players only need its title and progress.
type Quest struct {
	title string
	tasks []func() bool
	done  map[int]bool
}

// QuestSeen is the part of a Quest that is sent.
type QuestSeen struct {
	Title       string `repl:"max=24"`
	Done, Tasks uint8  `repl:"range=0:20"`
}

func ExampleAs() {
	schema := replication.NewSchema()
	replication.Register[Quest](schema, replication.As(
		func(from *Quest, to *QuestSeen) {
			*to = QuestSeen{from.title, uint8(len(from.done)), uint8(len(from.tasks))}
		},
		func(from *QuestSeen, to *Quest) {
			to.title, to.tasks = from.Title, make([]func() bool, from.Tasks)
			to.done = map[int]bool{}
			for i := range int(from.Done) {
				to.done[i] = true
			}
		}))
	fmt.Print(schema.Text())
	// Output:
	// arche-replicate schema 1
	// component Quest
	// Quest.Title string max=24
	// Quest.Done uint8 range=0:20
	// Quest.Tasks uint8 range=0:20
}

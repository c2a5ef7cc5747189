package replication

import (
	"reflect"
	"sync"

	"github.com/arche-replicate/arche-replicate/delta"
)

// rawSchema is a Schema behind its public face.
type rawSchema struct {
	mu         sync.Mutex
	components []component // and resources, in order: the index is the component's number on the wire
	layout     *delta.Layout
	text       string // once it is sealed
	refers     bool   // some of them, or of the messages, refer to entities
	strings    int    // how many columns are strings

	messages []messageType // the index is the message's number on the wire
	numbers  map[reflect.Type]int
	input    *component    // nil: there are no inputs
	talk     *delta.Layout // of messages and, behind them, the input
	mentions bool          // some of these refer to entities

	// From the first server or client on:
	conditions []condition // that some of them stand under
	link       int         // the component that links facets to entities, -1 if there are none
}

package snapshot

import "github.com/arche-replicate/arche-replicate/delta"

// A BasePair is two baselines that go together.
type BasePair struct{ Base, Second delta.Tick }

// RestAfter is how many ticks without a change make an entity count as at rest.
const RestAfter = 2

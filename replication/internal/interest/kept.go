package interest

import "github.com/arche-replicate/arche-replicate/replication/internal/bitset"

// keptFacets are those whose condition holds, now and in the tick before.
type keptFacets struct{ now, before bitset.Set }

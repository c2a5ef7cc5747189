package interest

import "github.com/arche-replicate/arche-replicate/replication/internal/bitset"

// keptSubEntities are those whose condition holds, now and in the tick before.
type keptSubEntities struct{ now, before bitset.Set }

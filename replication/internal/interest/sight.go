package interest

import (
	"github.com/arche-replicate/arche-replicate/replication/internal/bitset"
	"github.com/arche-replicate/arche-replicate/replication/internal/schema"
	"github.com/arche-replicate/arche-replicate/replication/internal/snapshot"
)

// Sight decides what one peer may see.
type Sight struct {
	Holder   any // the *replication.Peer
	snap     *snapshot.Snapshot
	schema   *schema.Schema
	interest *Shared

	View    View
	owned   bitset.Set // slots whose entities the peer owns
	OwnsAll bool       // it sees what any owner sees, and what is for all others of every entity
}

// Begin starts a session with a client that has so many slots; 0 means that it sets no limit.
func (p *Sight) Begin(slots uint32) {
	v := &p.View
	v.InView, v.Next, v.kept = nil, nil, nil
	v.room, v.withheld = int(min(slots, snapshot.MaxSlots)), 0
}

// End forgets what the peer may see.
func (p *Sight) End() { p.View = View{} }

// SetCriteria sets what the peer may see, from the next tick on.
func (p *Sight) SetCriteria(c Criteria) {
	v := &p.View
	v.Released = v.Released || v.Keep && !c.Keep
	v.Criteria, v.passes, v.lastTable = c, nil, nil
}

// Init prepares a sight. holder is the peer.
func (p *Sight) Init(holder any, snap *snapshot.Snapshot, s *schema.Schema, shared *Shared) {
	p.Holder, p.snap, p.schema, p.interest = holder, snap, s, shared
}

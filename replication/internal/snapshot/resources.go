package snapshot

import (
	"unsafe"

	"github.com/arche-replicate/arche-replicate/replication/internal/archeutil"
	"github.com/arche-replicate/arche-replicate/replication/internal/wire"
)

// serverResources knows the resources of the server's world.
type serverResources struct {
	archeutil.ResourceTypes
	members []member         // of all resources
	at      []unsafe.Pointer // by component: its address in this tick, or nil
	table   Table            // has the members that exist; it is no table of entities
}

// Init prepares the resources of the schema.
func (r *serverResources) Init(s *Snapshot) {
	r.ResourceTypes.Init(s.World, s.Schema)
	r.at = make([]unsafe.Pointer, len(s.Schema.Components))
	r.table = Table{slots: []uint32{archeutil.ResourceSlot}, Weight: 1}
	width := 0
	for k := range r.Set.All() {
		c := &s.Schema.Components[k]
		width += c.Layout.Width()
		r.members = append(r.members, member{
			Component: k, values: c, history: s.Histories[k],
			Blocks: make([]MemberBlock, 1), bytes: make([]byte, c.Bytes()), strings: make([]string, len(c.Strings)),
		})
	}
	if width > wire.MaxEntityBits {
		panic("replication: the resources of the schema take more than 32 KiB: " +
			"replicate some as components of an entity that is there for them")
	}
}

package interest

import "github.com/arche-replicate/arche-replicate/replication/internal/snapshot"

// Group is a Group behind its public face.
type Group struct {
	Snap *snapshot.Snapshot
	Sets *Shared

	Members        []groupMember
	Former         []FormerMember
	Phase          uint32 // of components that are looked at every few ticks
	listed         bool   // in groups.list
	MembersChanged bool   // members may have come, ended or left
}

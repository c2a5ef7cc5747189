package replication

// A worldMark is a resource of a world. That it is gone tells that the world was reset; see worldWatch.
type worldMark struct {
	_ byte // so that no two have the same address
}

package replication

// group is a Group behind its public face.
type group struct {
	snap *snapshot
	sets *interestSets

	members []groupMember
	former  []formerMember
	phase   uint32 // of components that are looked at every few ticks
	listed  bool   // in groups.list
	stirred bool   // members may have come, ended or left
}

package replication

// interestSets is what decides who sees what, and is the same for all peers.
type interestSets struct {
	snap *snapshot

	owners ownership

	grids  []*grid
	sets   []*entitySet
	groups groups
}

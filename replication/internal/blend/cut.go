package blend

import (
	"slices"

	"github.com/arche-replicate/arche-replicate/replication/internal/schema"
)

// A Cut makes changes of a component discontinuities: between two states in which it differs, nothing of the entity is
// blended.
type Cut struct {
	compared []int // words of a row
}

// NewCut returns the cut of the fields with the given paths, which have no indices, or of all fields. It returns the
// first path that the component lacks, or an empty one.
func NewCut(c *schema.Component, paths []string) (cut Cut, missing string) {
	found := map[string]bool{}
	for i := range c.Columns {
		col := &c.Columns[i]
		path := pattern(col.Path)
		if len(paths) > 0 && !slices.Contains(paths, path) {
			continue
		}
		found[path] = true
		cut.add(col)
	}
	for _, path := range paths {
		if !found[path] {
			return cut, path
		}
	}
	return cut, ""
}

// add makes changes of a field count.
func (c *Cut) add(col *schema.Column) {
	for w := range col.Codec.Words() {
		c.compared = append(c.compared, col.Word+w)
	}
}

// Between reports whether two rows of the component differ in a way that counts.
func (c *Cut) Between(a, b []uint32) bool {
	for _, w := range c.compared {
		if a[w] != b[w] {
			return true
		}
	}
	return false
}

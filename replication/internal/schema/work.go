package schema

import "github.com/arche-replicate/arche-replicate/delta"

// FullWork returns the work of an entry without baseline.
func (s *Schema) FullWork(set *delta.Set) (work int) {
	for k := set.Next(0); k >= 0; k = set.Next(k + 1) {
		work += s.Components[k].Layout.Work()
	}
	return work
}

// RowWork returns the work of a row, at rest or not.
func RowWork(c *delta.Component, changed bool) int {
	switch {
	case changed:
		return c.Work()
	case c.Width() > 0:
		return 1
	}
	return 0
}

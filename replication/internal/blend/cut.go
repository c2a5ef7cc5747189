package blend

import "github.com/arche-replicate/arche-replicate/replication/internal/schema"

// A Cut makes changes of a component discontinuities: between two states in which a field with the tag cut differs,
// nothing of the entity is blended that has the same condition.
type Cut struct {
	Number   int   // of the component
	Words    int   // of its rows
	compared []int // words of a row
}

// Cuts returns the components of a schema that have fields with the tag cut.
func Cuts(s *schema.Schema) (cuts []Cut) {
	for k := range s.Components {
		comp := &s.Components[k]
		c := Cut{Number: k, Words: comp.Words}
		for i := range comp.Columns {
			if comp.Columns[i].Codec.Cut {
				c.add(&comp.Columns[i])
			}
		}
		if len(c.compared) > 0 {
			cuts = append(cuts, c)
		}
	}
	return cuts
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

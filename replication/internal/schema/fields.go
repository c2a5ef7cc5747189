package schema

import "strings"

// Field returns the component and column of a field by its name in the schema's text.
func (s *Schema) Field(name string) (component int, col *Column) {
	for k := range s.Components {
		c := &s.Components[k]
		path, ok := strings.CutPrefix(name, c.Name)
		for i := range c.Columns {
			own := c.Columns[i].Path
			if own != "" && own[0] != '[' {
				own = "." + own
			}
			if ok && path == own {
				return k, &c.Columns[i]
			}
		}
	}
	return -1, nil
}

// GridFields returns the names of fields that a grid may be over.
func (s *Schema) GridFields() string {
	const most = 12
	var names []string
	for k := range s.Components {
		c := &s.Components[k]
		for i := range c.Columns {
			if c.Columns[i].Codec.Op != OpFixed || c.Resource || c.Class != 0 {
				continue
			}
			if len(names) == most {
				return strings.Join(names, ", ") + " and more"
			}
			names = append(names, fullPath(c.Name, c.Columns[i].Path))
		}
	}
	if len(names) == 0 {
		return "none"
	}
	return strings.Join(names, ", ")
}

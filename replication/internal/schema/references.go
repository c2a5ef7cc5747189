package schema

// Refers reports whether the component refers to entities.
func (c *Component) Refers() bool { return len(c.References) > 0 }

// Targeted reports whether the component is a relation whose target is replicated.
func (c *Component) Targeted() bool {
	return len(c.Columns) > 0 && c.Columns[0].Codec.Op == OpRelation
}

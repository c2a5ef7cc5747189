package replication

import "unsafe" // for the name of the type that Arche hands out

// Arche moves rows as plain bytes, which the garbage collector does not notice: of a string that is moved while it is at work
// it may see neither the old place nor the new one, and free it. So the client holds the strings that it wrote.

// holdStrings holds the strings of component k of a mirror, whose value is at p. One of them may be the user's.
func (c *Client) holdStrings(m *mirror, k int, p unsafe.Pointer) {
	comp := &c.schema.components[k]
	if len(comp.strings) == 0 {
		return
	}
	if m.strings == nil {
		m.strings = make([]string, c.schema.strings)
	}
	comp.holdStrings(m.strings[comp.first:], p, 1)
}

// dropStrings lets go of the strings of component k.
func (c *Client) dropStrings(m *mirror, k int) {
	if comp := &c.schema.components[k]; m.strings != nil {
		clear(m.strings[comp.first:][:len(comp.strings)])
	}
}

package schema

// This file has the schema text, which names every registered type and field. Two ends must have
// the same text, by its hash; and the names of fields in it are those that options take.

import (
	"hash/fnv"
	"reflect"
	"strings"
)

// TextHeader is the first line of every schema text. Its number changes when the same text no
// longer means the same codes.
const TextHeader = "arche-replicate schema 1"

// FullText returns the schema text, before or after Freeze.
func (s *Schema) FullText() string {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.Layout != nil {
		return s.text
	}
	return s.buildText()
}

// buildText returns the schema text. The schema is locked.
func (s *Schema) buildText() string {
	var b strings.Builder
	b.WriteString(TextHeader + "\n")
	for i := range s.Components {
		if s.Components[i].Typ == reflect.TypeFor[subEntityOf]() {
			continue
		}
		b.WriteString(s.Components[i].kind() + " " + s.Components[i].Name + shownText(s, &s.Components[i]) + "\n")
		for _, line := range s.Components[i].Lines {
			b.WriteString(line + "\n")
		}
	}
	s.messageText(func(line string) { b.WriteString(line + "\n") })
	if s.conditional() {
		b.WriteString("facets" + "\n")
	}
	return b.String()
}

// dropLines frees the lines that the text was made of: servers and clients need only the text.
func (s *Schema) dropLines() {
	for i := range s.Components {
		s.Components[i].Lines = nil
	}
	for i := range s.Messages {
		s.Messages[i].Lines = nil
	}
	if s.Input != nil {
		s.Input.Lines = nil
	}
}

// messageText writes the lines of messages and the input.
func (s *Schema) messageText(write func(line string)) {
	for i := range s.Messages {
		m := &s.Messages[i]
		line := "message " + m.Name
		if m.Reliable {
			line += " reliable"
		} else {
			line += " unreliable"
		}
		if m.immediate {
			line += " immediate"
		}
		write(line)
		for _, line := range m.Lines {
			write(line)
		}
	}
	if s.Input != nil {
		write("input " + s.Input.Name)
		for _, line := range s.Input.Lines {
			write(line)
		}
	}
}

// Hash returns the fingerprint of the schema text.
func (s *Schema) Hash() uint64 {
	h := fnv.New64a()
	h.Write([]byte(s.FullText())) // never fails
	return h.Sum64()
}

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

// GridFields lists the fields that can be the axes of a grid, for errors.
func (s *Schema) GridFields() string {
	const most = 12
	var names []string
	for k := range s.Components {
		c := &s.Components[k]
		for i := range c.Columns {
			if !c.Columns[i].Codec.IsFixed() || c.Resource || c.Class != 0 {
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

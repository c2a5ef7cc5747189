package main

import "fmt"

// fault is an error in a trace, and its position.
type fault struct {
	file   string
	line   int    // from 1; 0 if it concerns no line
	column string // its name; empty if it concerns no column
	reason string
}

// Error returns one line: cubes.csv: line 7, column Position.X: "abc" is not a float32.
func (f *fault) Error() string {
	switch {
	case f.line == 0 && f.column != "":
		return fmt.Sprintf("%s: column %s: %s", f.file, f.column, f.reason)
	case f.line == 0:
		return fmt.Sprintf("%s: %s", f.file, f.reason)
	case f.column == "":
		return fmt.Sprintf("%s: line %d: %s", f.file, f.line, f.reason)
	}
	return fmt.Sprintf("%s: line %d, column %s: %s", f.file, f.line, f.column, f.reason)
}

package main

import (
	"fmt"
	"io"
	"slices"
)

// notes are sentences about a trace that is not replayed completely. Each is printed once, however often the trace is
// replayed.
type notes struct{ texts []string }

func (n *notes) add(format string, args ...any) {
	if n == nil {
		return
	}
	if text := fmt.Sprintf(format, args...); !slices.Contains(n.texts, text) {
		n.texts = append(n.texts, text)
	}
}

func (n *notes) print(w io.Writer) {
	for _, text := range n.texts {
		fmt.Fprintln(w, "trace:", text)
	}
}

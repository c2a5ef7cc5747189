package main

import (
	"bufio"
	"fmt"
	"io"
	"strings"

	"github.com/arche-replicate/arche-replicate/replication"
)

// writeCodes prints the quantised codes of each row of a trace as CSV, for programs that compare other
// ways to send them: tick and entity, then the codes of each component, which are empty if the entity does
// not have it. A column is named after its component and the number of the code in it.
func writeCodes(cfg config, src io.Reader, dst io.Writer) error {
	plain, release, err := decompress(src)
	if err != nil {
		return err
	}
	defer release()
	r, err := newReader(cfg.name(), plain)
	if err != nil {
		return err
	}
	schema, err := buildSchema(r.components)
	if err != nil {
		return r.faultAt(r.typesLine, err)
	}
	w := bufio.NewWriter(dst)
	fmt.Fprint(w, "tick,entity") // errors come out of Flush
	counts := make([]int, len(r.components))
	for i, c := range r.components {
		counts[i] = len(schema.Codes(r.values[i].Interface(), []uint64{}))
		for n := range counts[i] {
			fmt.Fprintf(w, ",%s.%d", c.name, n)
		}
	}
	fmt.Fprintln(w)
	err = r.next()
	for first := r.tick; err == nil && !cfg.over(r.tick-first); err = r.next() {
		fmt.Fprintf(w, "%d,%d", r.tick, r.entity)
		writeRow(w, r, schema, counts)
	}
	if err != nil && err != io.EOF {
		return err
	}
	return w.Flush()
}

// writeRow prints the codes of the latest row, of which each component has so many.
func writeRow(w io.Writer, r *reader, schema *replication.Schema, counts []int) {
	for i, has := range r.has {
		if !has {
			fmt.Fprint(w, strings.Repeat(",", counts[i]))
			continue
		}
		for _, code := range schema.Codes(r.values[i].Interface(), []uint64{}) {
			fmt.Fprintf(w, ",%d", code)
		}
	}
	fmt.Fprintln(w)
}

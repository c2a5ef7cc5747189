package main

import (
	"bufio"
	"fmt"
	"io"
	"slices"
	"strings"

	"github.com/arche-replicate/arche-replicate/replication"
)

// writeCodes prints the quantised codes of each row of a trace as CSV, for programs that compare other
// ways to send them: tick and entity, then the codes of each component, which are empty if the entity does
// not have it. A column is named after its component and the number of the code in it.
func writeCodes(cfg config, src io.Reader, dst io.Writer) error {
	r, release, err := openRows(cfg, src)
	if err != nil {
		return err
	}
	defer release()
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
	numbers, err := targetCodes(r.components)
	if err != nil {
		return r.faultAt(r.typesLine, err)
	}
	err = r.next()
	for first := r.tick; err == nil && !cfg.over(r.tick-first); err = r.next() {
		fmt.Fprintf(w, "%d,%d", r.tick, r.entity)
		writeRow(w, r, schema, counts, numbers)
	}
	if err != nil && err != io.EOF {
		return err
	}
	return w.Flush()
}

// targetCodes returns, by component, the columns of codes that refer to entities.
func targetCodes(components []component) ([]map[int]int, error) {
	owners, err := codeOwners(components)
	if err != nil {
		return nil, err
	}
	numbers := make([]map[int]int, len(components))
	for _, ref := range referencesOf(components) {
		c := &components[ref.component]
		for _, f := range c.fields {
			if k := ref.column - f.column; k >= 0 && k < f.length {
				if numbers[ref.component] == nil {
					numbers[ref.component] = map[int]int{}
				}
				numbers[ref.component][slices.Index(owners[ref.component], f.fullName(c.name))+k] = ref.column
			}
		}
	}
	return numbers, nil
}

// writeRow prints the codes of the latest row, of which each component has so many. Those of references are the numbers
// of entities.
func writeRow(w io.Writer, r *reader, schema *replication.Schema, counts []int, numbers []map[int]int) {
	for i, has := range r.has {
		if !has {
			fmt.Fprint(w, strings.Repeat(",", counts[i]))
			continue
		}
		for n, code := range schema.Codes(r.values[i].Interface(), []uint64{}) {
			if column, ok := numbers[i][n]; ok {
				code = r.targets[column]
			}
			fmt.Fprintf(w, ",%d", code)
		}
	}
	fmt.Fprintln(w)
}

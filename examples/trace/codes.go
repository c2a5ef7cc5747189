package main

import (
	"bufio"
	"fmt"
	"io"
	"strconv"
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
	var line []byte
	codes := []uint64{}
	for first := uint64(0); ; {
		fmt.Fprintln(w)
		if err := r.next(); err == io.EOF {
			return w.Flush()
		} else if err != nil {
			return err
		}
		if line == nil {
			first = r.tick
		}
		if cfg.over(r.tick - first) {
			return w.Flush()
		}
		line = strconv.AppendUint(line[:0], r.tick, 10)
		line = strconv.AppendUint(append(line, ','), r.entity, 10)
		for i, has := range r.has {
			if has {
				codes = schema.Codes(r.values[i].Interface(), codes[:0])
			}
			for n := range counts[i] {
				if line = append(line, ','); has {
					line = strconv.AppendUint(line, codes[n], 10)
				}
			}
		}
		fmt.Fprintf(w, "%s", line)
	}
}

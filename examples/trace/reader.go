package main

import (
	"bufio"
	"encoding/csv"
	"errors"
	"fmt"
	"io"
	"reflect"
	"strconv"
	"strings"
)

// defaultRate is the rate of a trace without a rate comment, in ticks per second.
const defaultRate = 60

// reader reads a trace row by row and holds only one row. It refuses malformed traces with a
// [*fault].
type reader struct {
	header

	file     string
	csv      *csv.Reader
	recorded *recorded // instead of csv
	skip     int       // lines that csv does not count
	line     int       // of the latest row

	// The latest row.
	tick   uint64
	entity uint64
	row
	empty bool // no row has been read yet
}

// row is what an entity has. If it has a component, that is in values.
type row struct {
	has    []bool          // by component
	values []reflect.Value // by component: pointers, whose values the next row overwrites
	cells  []reflect.Value // by column: the address in values

	targets []uint64 // by column: the number of the entity to which it refers; nil if nothing refers to any
}

// newRow makes room for a row.
func (h *header) newRow() row {
	r := row{
		has:    make([]bool, len(h.components)),
		values: make([]reflect.Value, len(h.components)),
		cells:  make([]reflect.Value, len(h.columns)),
	}
	for i := range h.components {
		c := &h.components[i]
		r.values[i] = reflect.New(c.typ)
		for j := range c.fields {
			f := &c.fields[j]
			for k, way := range f.steps(c.typ) {
				r.cells[f.column+k] = follow(r.values[i].Elem(), way)
			}
			if f.scalar() == entityType {
				r.targets = make([]uint64, len(h.columns))
			}
		}
	}
	return r
}

// newReader reads up to the first row. The file name is for errors.
func newReader(file string, src io.Reader) (*reader, error) {
	r := &reader{file: file, empty: true}
	r.rate = defaultRate
	buffered := bufio.NewReaderSize(src, 1<<16)
	if err := r.readComments(buffered); err != nil {
		return nil, err
	}
	r.csv = csv.NewReader(buffered)
	r.csv.FieldsPerRecord = -1 // checked here, to name the column
	r.csv.ReuseRecord = true
	r.line = r.skip

	names, err := r.readRecord("column names")
	if err == nil {
		err = r.fault(r.parseNames(names))
	}
	if err != nil {
		return nil, err
	}
	types, err := r.readRecord("column types")
	if err == nil {
		err = r.checkCount(types)
	}
	if err == nil {
		r.typesLine = r.line
		err = r.fault(r.parseTypes(types))
	}
	if err != nil {
		return nil, err
	}
	r.row = r.newRow()
	return r, nil
}

// readComments consumes the lines that begin with #.
func (r *reader) readComments(src *bufio.Reader) error {
	for {
		first, err := src.Peek(1)
		if len(first) == 0 && err != io.EOF {
			return r.broken(err)
		}
		if len(first) == 0 || first[0] != '#' {
			return nil
		}
		text, err := src.ReadString('\n')
		if err != nil && err != io.EOF {
			return r.broken(err)
		}
		r.skip++
		r.line = r.skip
		if words := strings.Fields(text[1:]); len(words) == 2 && words[0] == "rate" {
			rate, err := strconv.ParseFloat(words[1], 64)
			if err != nil || !(rate > 0 && rate <= 1e6) {
				reason := fmt.Sprintf("a rate of %q: must be a number of ticks per second, above 0 and at most 1e6",
					words[1])
				return &fault{r.file, r.line, "", reason}
			}
			r.rate = rate
		}
	}
}

// next reads a row into tick, entity, has and values. At the end of the trace it returns io.EOF.
func (r *reader) next() error {
	if r.recorded != nil {
		return r.recorded.next(r)
	}
	record, err := r.readRecord("")
	if err == io.EOF && r.empty {
		return &fault{r.file, r.line + 1, "", "the file ends before its first row"}
	}
	if err != nil {
		return err
	}
	if err := r.checkCount(record); err != nil {
		return err
	}
	return r.fault(r.parseRow(record))
}

func (r *reader) parseRow(record []string) error {
	tick, err := parseNumber(record[0], r.tickBits)
	if err != nil {
		return blame(r.columns[0], "%v", err)
	}
	if tick < r.tick && !r.empty {
		return blame(r.columns[0], "rows must be sorted by tick, but %d comes after %d", tick, r.tick)
	}
	r.empty = false
	r.tick = tick
	if r.entity, err = parseNumber(record[1], r.entityBits); err != nil {
		return blame(r.columns[1], "%v", err)
	}
	for i, c := range r.components {
		if r.has[i], err = r.parseComponent(c, record); err != nil {
			return err
		}
	}
	return nil
}

// parseComponent reports whether the entity has the component.
func (r *reader) parseComponent(c component, record []string) (bool, error) {
	filled, hole := -1, -1
	for i := c.first; i < c.end; i++ {
		if record[i] == "" {
			hole = max(hole, i)
		} else {
			filled = max(filled, i)
		}
	}
	switch {
	case filled < 0:
		return false, nil
	case hole >= 0:
		return false, blame(r.columns[hole], "empty, but %s is not; of a component, all cells are empty or none is",
			r.columns[filled])
	}
	for i := c.first; i < c.end; i++ {
		if err := parseInto(r.cells[i], record[i]); err != nil {
			return false, blame(r.columns[i], "%v", err)
		}
	}
	return true, nil
}

// readRecord reads a line of CSV. It returns io.EOF at the end, unless something is missing: what
// names it.
func (r *reader) readRecord(what string) ([]string, error) {
	record, err := r.csv.Read()
	if err == io.EOF && what != "" {
		return nil, &fault{r.file, r.line + 1, "", "the file ends before its " + what}
	}
	if err == io.EOF {
		return nil, err
	}
	var syntax *csv.ParseError
	if errors.As(err, &syntax) {
		return nil, &fault{r.file, r.skip + syntax.Line, r.columnOf(record), syntax.Err.Error()}
	}
	if err != nil {
		return nil, r.broken(err)
	}
	line, _ := r.csv.FieldPos(0)
	line += r.skip
	if line != r.line+1 {
		return nil, &fault{r.file, r.line + 1, "", "a blank line, or one that a quoted cell broke"}
	}
	r.line = line
	return record, nil
}

// columnOf returns the name of the column after those of a record that ended in an error.
func (r *reader) columnOf(record []string) string {
	if len(record) < len(r.columns) {
		return r.columns[len(record)]
	}
	return ""
}

func (r *reader) checkCount(record []string) error {
	got, want := len(record), len(r.columns)
	switch {
	case got < want:
		return &fault{r.file, r.line, r.columns[got], fmt.Sprintf("missing; there are %d of %d cells", got, want)}
	case got > want:
		return &fault{r.file, r.line, "", fmt.Sprintf("%d cells, but only %d columns, of which %s is the last", got,
			want, r.columns[want-1])}
	}
	return nil
}

// fault adds the file and the latest line to an error, which may name a column.
func (r *reader) fault(err error) error { return r.faultAt(r.line, err) }

// faultAt adds the file and a line to an error, which may name a column.
func (r *reader) faultAt(line int, err error) error {
	if err == nil {
		return nil
	}
	var blamed *columnError
	if errors.As(err, &blamed) {
		return &fault{r.file, line, blamed.column, blamed.reason}
	}
	return &fault{r.file, line, "", err.Error()}
}

// broken returns the error of a file that can't be read further.
func (r *reader) broken(err error) error {
	return &fault{r.file, r.line + 1, "", "cannot be read: " + err.Error()}
}

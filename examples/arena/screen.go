package main

import (
	"io"
	"os"
	"strconv"
)

// screen shows the fight while it goes on: in place on a terminal, in lines elsewhere, or not at
// all.
type screen struct {
	out      io.Writer // nil: no output
	terminal *terminal // nil: in lines
	headed   bool
	shown    int // second of the latest line
}

// frame is what a screen shows of a moment.
type frame interface {
	draw(columns, rows int, s style) []string // exactly so many rows, none longer
	plainHead() string
	plainRow() string // in columns below plainHead
}

// newScreen writes to out, in place if that is a capable terminal.
func newScreen(out io.Writer) *screen {
	s := &screen{out: out}
	f, ok := out.(*os.File)
	if !ok {
		return s
	}
	if _, _, ok := terminalSize(f); !ok {
		return s
	}
	if style, ok := styleOf(os.Getenv); ok {
		s.terminal = &terminal{out: out, size: func() (columns, rows int) { return sizeOf(f) }, style: style}
	}
	return s
}

// sizeOf returns the size of a terminal, or a usual one if it is unknown.
func sizeOf(f *os.File) (columns, rows int) {
	columns, rows, _ = terminalSize(f)
	known := func(size int, name string, usual int) int {
		if size > 0 {
			return size
		}
		if n, err := strconv.Atoi(os.Getenv(name)); err == nil && n > 0 {
			return n
		}
		return usual
	}
	return known(columns, "COLUMNS", 80), known(rows, "LINES", 24)
}

// columnsOf returns the maximal width of lines written to out.
func columnsOf(out io.Writer) int {
	if f, ok := out.(*os.File); ok {
		if _, _, ok := terminalSize(f); ok {
			columns, _ := sizeOf(f)
			return min(columns, plainWidth)
		}
	}
	return plainWidth
}

// printLine prints text outside of the frames, in lines that fit.
func (s *screen) printLine(text string) {
	if s.out != nil {
		s.print(wrap(text, columnsOf(s.out)))
	}
}

// print prints a line. A write error does not end the fight.
func (s *screen) print(line string) { _, _ = io.WriteString(s.out, line+"\n") }

// show shows the fight at a second. It makes a picture only when it is time for one.
func (s *screen) show(second int, picture func() frame) {
	switch {
	case s.out == nil:
	case s.terminal != nil:
		if s.terminal.ready() {
			s.terminal.show(picture().draw)
		}
	case second > s.shown:
		s.shown = second
		f := picture()
		if !s.headed {
			s.headed = true
			s.print("\n" + f.plainHead())
		}
		s.print(f.plainRow())
	}
}

// done calls leave, and prints an empty line.
func (s *screen) done() {
	s.leave()
	if s.out != nil {
		s.print("")
	}
}

// leave ends the display in place and restores the earlier contents.
func (s *screen) leave() {
	if s.terminal != nil {
		s.terminal.leave()
	}
}

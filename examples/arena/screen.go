package main

import (
	"io"
	"os"
	"strconv"
)

// screen shows how it goes while it goes: in place on a terminal, in lines elsewhere, or not at
// all.
type screen struct {
	out      io.Writer // nil: nowhere
	terminal *terminal // nil: in lines
	headed   bool
	shown    int // tick of the latest line
}

// newScreen writes to out, in place if that is a terminal that can.
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

// sizeOf is the size of a terminal, or what is usual if it does not know.
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

// columnsOf is how wide lines may be that are written to out.
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

// print prints a line. A fight does not end because nobody can watch it.
func (s *screen) print(line string) { _, _ = io.WriteString(s.out, line+"\n") }

// show shows the fight as of a tick, and asks for a picture only if it is time for one.
func (s *screen) show(tick, tickRate int, picture func() *picture) {
	switch {
	case s.out == nil:
	case s.terminal != nil:
		if s.terminal.ready() {
			s.terminal.show(picture().draw)
		}
	case tick > s.shown && tick%tickRate == 0:
		s.shown = tick
		if !s.headed {
			s.headed = true
			s.print("\n" + plainHead)
		}
		s.print(picture().plainRow())
	}
}

// done is leave, and a gap before what follows.
func (s *screen) done() {
	s.leave()
	if s.out != nil {
		s.print("")
	}
}

// leave ends what is shown in place. What was said before is to be seen again.
func (s *screen) leave() {
	if s.terminal != nil {
		s.terminal.leave()
	}
}

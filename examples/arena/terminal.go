package main

import (
	"fmt"
	"io"
	"strings"
	"sync"
	"time"
)

// Control sequences of terminals since the VT100, as xterm has them: the other screen, no cursor,
// and no new line after the last column; and back, from an empty one, as some terminals leave what
// stands there behind after a resize.
const (
	enterSequence = "\x1b[?1049h\x1b[?25l\x1b[?7l"
	leaveSequence = "\x1b[0m\x1b[H\x1b[2J\x1b[?7h\x1b[?25h\x1b[?1049l"
)

const (
	frameTime = time.Second / 15
	// repaint is how often all is drawn anew, since keys that are pressed leave traces.
	repaint = time.Second
)

// terminal draws frames in place of each other. Its methods may be called from several goroutines,
// as whoever ends the program must be able to leave it as it was.
type terminal struct {
	out   io.Writer
	size  func() (columns, rows int)
	style style

	mu            sync.Mutex
	entered, left bool
	columns, rows int
	shown         []string  // the lines that are to be seen
	drawn         time.Time // the latest frame
	painted       time.Time // the latest that was drawn as a whole
}

// ready tells whether it is time for a frame.
func (t *terminal) ready() bool {
	t.mu.Lock()
	defer t.mu.Unlock()
	return !t.left && time.Since(t.drawn) >= frameTime
}

// show draws a frame, of the size that the terminal has now. After leave it does nothing.
func (t *terminal) show(draw func(columns, rows int, s style) []string) {
	columns, rows := t.size()
	lines := draw(columns, rows, t.style)

	t.mu.Lock()
	defer t.mu.Unlock()
	if t.left {
		return
	}
	now := time.Now()
	t.drawn = now
	var text strings.Builder
	if !t.entered {
		t.entered = true
		text.WriteString(enterSequence)
	}
	if columns != t.columns || rows != t.rows || now.Sub(t.painted) >= repaint {
		if columns != t.columns || rows != t.rows {
			text.WriteString("\x1b[2J")
		}
		t.columns, t.rows, t.painted = columns, rows, now
		t.shown = nil
	}
	for y, line := range lines {
		if y < len(t.shown) && t.shown[y] == line {
			continue
		}
		fmt.Fprintf(&text, "\x1b[%d;1H\x1b[2K%s", y+1, line)
	}
	t.shown = lines
	// A fight does not end because nobody can watch it.
	_, _ = io.WriteString(t.out, text.String())
}

// leave gives the terminal back as it was.
func (t *terminal) leave() {
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.entered && !t.left {
		_, _ = io.WriteString(t.out, leaveSequence)
	}
	t.left = true
}

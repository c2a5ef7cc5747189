package main

import (
	"fmt"
	"io"
	"strings"
	"sync"
	"time"
)

// Control sequences of terminals since the VT100, as in xterm: alternate screen, no cursor, and no
// line wrap; and back, from an empty screen, because some terminals keep its contents after a
// resize.
const (
	enterSequence = "\x1b[?1049h\x1b[?25l\x1b[?7l"
	leaveSequence = "\x1b[0m\x1b[H\x1b[2J\x1b[?7h\x1b[?25h\x1b[?1049l"
)

const (
	frameTime = time.Second / 15
	// repaint is how often everything is drawn again, because keys that are pressed leave traces.
	repaint = time.Second
)

// terminal draws frames in place. Its methods may be called from several goroutines, because
// whichever ends the program must be able to restore the terminal.
type terminal struct {
	out   io.Writer
	size  func() (columns, rows int)
	style style

	mu            sync.Mutex
	entered, left bool
	columns, rows int
	shown         []string  // the lines on the screen
	drawn         time.Time // time of the latest frame
	painted       time.Time // time of the latest full repaint
}

// ready reports whether it is time for a frame.
func (t *terminal) ready() bool {
	t.mu.Lock()
	defer t.mu.Unlock()
	return !t.left && time.Since(t.drawn) >= frameTime
}

// show draws a frame in the terminal's current size. After leave it does nothing.
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
	// A write error does not end the fight.
	_, _ = io.WriteString(t.out, text.String())
}

// leave restores the terminal.
func (t *terminal) leave() {
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.entered && !t.left {
		_, _ = io.WriteString(t.out, leaveSequence)
	}
	t.left = true
}

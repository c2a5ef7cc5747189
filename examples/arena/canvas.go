package main

import (
	"strings"
	"unicode"
)

// canvas is a grid of characters. Characters outside of it are dropped, so nothing drawn on it can
// be wider or higher than the terminal.
type canvas struct {
	width, height int
	style         style
	cells         []cell
}

type cell struct {
	glyph rune // 0: empty
	ink   ink
}

func newCanvas(width, height int, s style) *canvas {
	width, height = max(width, 0), max(height, 0)
	return &canvas{width, height, s, make([]cell, width*height)}
}

func (c *canvas) at(x, y int) *cell {
	if x < 0 || x >= c.width || y < 0 || y >= c.height {
		return &cell{} // outside
	}
	return &c.cells[y*c.width+x]
}

// write puts text at a position and returns the column after it.
func (c *canvas) write(x, y int, i ink, text string) int {
	for _, r := range text {
		*c.at(x, y) = cell{c.safe(r), i}
		x++
	}
	return x
}

// writeRight puts text so that it ends before column x.
func (c *canvas) writeRight(x, y int, i ink, text string) {
	c.write(x-width(text), y, i, text)
}

// safe replaces characters that may be wider than a column or control the terminal: names come from
// other machines.
func (c *canvas) safe(r rune) rune {
	narrow := r < 0x300 || r >= 0x2000 && r < 0x2E80
	if !unicode.IsPrint(r) || !narrow || !c.style.unicode && r > unicode.MaxASCII {
		return '?'
	}
	return r
}

// lines returns the rows from top to bottom, with colours if the style has them.
func (c *canvas) lines() []string {
	lines := make([]string, c.height)
	for y := range lines {
		row := c.cells[y*c.width : (y+1)*c.width]
		for len(row) > 0 && (row[len(row)-1].glyph == 0 || row[len(row)-1].glyph == ' ') {
			row = row[:len(row)-1]
		}
		var line strings.Builder
		now := plainInk
		for _, cell := range row {
			if cell.glyph == 0 {
				cell.glyph = ' '
			}
			if c.style.colour && cell.ink != now && cell.glyph != ' ' {
				now = cell.ink
				line.WriteString("\x1b[" + codes[now] + "m")
			}
			line.WriteRune(cell.glyph)
		}
		if now != plainInk {
			line.WriteString("\x1b[0m")
		}
		lines[y] = line.String()
	}
	return lines
}

package main

import (
	"math"

	"github.com/arche-replicate/arche-replicate/examples/arena/game"
)

// box is a part of a canvas: its upper left corner and its size in cells.
type box struct{ x, y, width, height int }

// frameBox draws the edges of a box with a title in the upper one, and returns the inside.
func (c *canvas) frameBox(b box, title string, titleInk ink) box {
	g := c.style.glyphs()
	right, bottom := b.x+b.width-1, b.y+b.height-1
	for x := b.x + 1; x < right; x++ {
		*c.at(x, b.y), *c.at(x, bottom) = cell{g.across, faintInk}, cell{g.across, faintInk}
	}
	for y := b.y + 1; y < bottom; y++ {
		*c.at(b.x, y), *c.at(right, y) = cell{g.upward, faintInk}, cell{g.upward, faintInk}
	}
	for i, at := range [][2]int{{b.x, b.y}, {right, b.y}, {b.x, bottom}, {right, bottom}} {
		*c.at(at[0], at[1]) = cell{g.corners[i], faintInk}
	}
	if room := b.width - 6; room > 0 {
		if width(title) > room {
			title = string([]rune(title)[:room])
		}
		c.write(b.x+2, b.y, titleInk, " "+title+" ")
	}
	return box{b.x + 1, b.y + 1, b.width - 2, b.height - 2}
}

// drawField shows the arena in a box of any size. Of several things in the same cell the most
// important is visible: shots are behind everything, players in front.
func (c *canvas) drawField(b box, s *survey) {
	if b.width < 1 || b.height < 1 {
		return
	}
	g := c.style.glyphs()
	for _, at := range s.shots {
		c.drawShot(b, g, at)
	}
	put := func(at game.Position, r rune, i ink) {
		x, y := b.place(at, 1, 1)
		*c.at(b.x+x, b.y+y) = cell{r, i}
	}
	for _, at := range s.crates {
		put(at, g.crate, crateInk)
	}
	for _, layer := range []func(*sight) (rune, ink, bool){
		func(s *sight) (rune, ink, bool) { return g.wreck, faintInk, !s.alive },
		func(s *sight) (rune, ink, bool) { return g.bot[quarter(s.heading)], botInk, s.alive && s.name == "" },
		func(s *sight) (rune, ink, bool) {
			return g.player[quarter(s.heading)], playerInk, s.alive && s.name != ""
		},
	} {
		for i := range s.ships {
			if r, ink, here := layer(&s.ships[i]); here {
				put(s.ships[i].at, r, ink)
			}
		}
	}
}

// brailleDots are the bits of the dots in U+2800 and the following characters, by row and column.
var brailleDots = [4][2]rune{{0x01, 0x08}, {0x02, 0x10}, {0x04, 0x20}, {0x40, 0x80}}

// drawShot adds a shot to a cell, which can show eight of them as dots if the style has dots.
func (c *canvas) drawShot(b box, g *glyphs, at game.Position) {
	if !g.dots {
		x, y := b.place(at, 1, 1)
		*c.at(b.x+x, b.y+y) = cell{g.shot, shotInk}
		return
	}
	x, y := b.place(at, 2, 4)
	to := c.at(b.x+x/2, b.y+y/4)
	if to.glyph < 0x2800 {
		*to = cell{0x2800, shotInk}
	}
	to.glyph |= brailleDots[y%4][x%2]
}

// place returns the position of a point of the arena in a box whose cells have so many columns and
// rows of dots.
func (b box) place(at game.Position, columns, rows int) (x, y int) {
	scale := func(v float64, n int) int {
		return max(0, min(int((v+game.Size)/(2*game.Size)*float64(n)), n-1))
	}
	return scale(float64(at.X), b.width*columns), scale(-float64(at.Y), b.height*rows) // y grows upwards
}

// quarter is the direction of an angle: right, up, left or down.
func quarter(angle float64) int { return int(math.Round(angle/(math.Pi/2))+4) % 4 }

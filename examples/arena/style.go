package main

import (
	"cmp"
	"strings"
)

// style is what a terminal can show.
type style struct {
	unicode bool
	colour  bool
}

// styleOf reads the usual variables of the environment. ok is false for a terminal that can't move
// its cursor.
func styleOf(getenv func(string) string) (s style, ok bool) {
	term := getenv("TERM")
	locale := strings.ToLower(cmp.Or(getenv("LC_ALL"), getenv("LC_CTYPE"), getenv("LANG")))
	s.unicode = strings.Contains(locale, "utf-8") || strings.Contains(locale, "utf8")
	s.colour = getenv("NO_COLOR") == ""
	return s, term != "" && term != "dumb"
}

// glyphs are the characters of a frame. All of them are one column wide.
type glyphs struct {
	player, bot    [4]rune // right, up, left, down
	wreck, crate   rune
	shot           rune // in the legend, and on the field where there are no dots
	dots           bool // shots are braille dots, eight to a cell
	corners        [4]rune
	across, upward rune
	bar            []rune // from nearly empty to full
	trend          []rune // from low to high
}

var (
	unicodeGlyphs = &glyphs{
		player: [4]rune{'►', '▲', '◄', '▼'}, bot: [4]rune{'▹', '▵', '◃', '▿'},
		wreck: '×', crate: '◆', shot: '⠂', dots: true,
		corners: [4]rune{'┌', '┐', '└', '┘'}, across: '─', upward: '│',
		bar: []rune("▏▎▍▌▋▊▉█"), trend: []rune("▁▂▃▄▅▆▇█"),
	}
	// Without colours, too, players and bots must look different.
	asciiGlyphs = &glyphs{
		player: [4]rune{'R', 'U', 'L', 'D'}, bot: [4]rune{'>', '^', '<', 'v'},
		wreck: 'x', crate: '+', shot: '.',
		corners: [4]rune{'+', '+', '+', '+'}, across: '-', upward: '|',
		bar: []rune("#"), trend: []rune("_.-=+*#@"),
	}
)

func (s style) glyphs() *glyphs {
	if s.unicode {
		return unicodeGlyphs
	}
	return asciiGlyphs
}

// ink is the meaning of a character, which determines its colour.
type ink uint8

const (
	plainInk ink = iota
	faintInk
	strongInk
	playerInk
	botInk
	shotInk
	crateInk
	goodInk
	badInk
)

// codes are the parameters of Select Graphic Rendition (ECMA-48) for each ink.
var codes = [...]string{
	plainInk: "0", faintInk: "0;90", strongInk: "0;1", playerInk: "0;1;96", botInk: "0;31",
	shotInk: "0;93", crateInk: "0;92", goodInk: "0;1;92", badInk: "0;1;91",
}

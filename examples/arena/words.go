package main

import (
	"fmt"
	"strings"
	"unicode/utf8"
)

// plainWidth is the maximal width of lines without a terminal, in columns.
const plainWidth = 100

// width returns the number of columns of a text, of characters as the arena prints them.
func width(text string) int { return utf8.RuneCountInString(text) }

// count returns a number with a noun, "1 client" or "2 clients".
func count[N int | uint16 | uint64](n N, noun string) string {
	if stem, ok := strings.CutSuffix(noun, "y"); n != 1 && ok {
		noun = stem + "ies"
	} else if n != 1 {
		noun += "s"
	}
	return thousands(n) + " " + noun
}

// thousands returns a number in groups of three digits.
func thousands[N int | uint16 | uint64](n N) string {
	digits := fmt.Sprint(n)
	for i := len(digits) - 3; i > 0 && digits[i-1] != '-'; i -= 3 {
		digits = digits[:i] + "," + digits[i:]
	}
	return digits
}

// percent returns a share with one decimal.
func percent(share float64) string { return fmt.Sprintf("%.1f %%", 100*share) }

// wrap breaks text into lines of at most so many columns, between words. Line breaks in the text
// stay, and so do spaces at the beginning of its lines. A word longer than a line is broken.
func wrap(text string, columns int) string {
	columns = max(columns, 1)
	var out strings.Builder
	for i, paragraph := range strings.Split(text, "\n") {
		if i > 0 {
			out.WriteByte('\n')
		}
		indent := paragraph[:len(paragraph)-len(strings.TrimLeft(paragraph, " "))]
		if len(indent) >= columns {
			indent = ""
		}
		out.WriteString(indent)
		at, empty := len(indent), true
		newLine := func() {
			out.WriteString("\n" + indent)
			at, empty = len(indent), true
		}
		for _, word := range strings.Fields(paragraph) {
			if !empty && at+1+width(word) > columns {
				newLine()
			}
			if !empty {
				out.WriteByte(' ')
				at++
			}
			for _, r := range word {
				if at == columns {
					newLine()
				}
				out.WriteRune(r)
				at++
				empty = false
			}
		}
	}
	return out.String()
}

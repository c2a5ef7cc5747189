package main

import "strings"

// tableColumn is a column of a table.
type tableColumn struct {
	head  string
	cells []string
	spare int // columns with the highest value are dropped first if there is no room; 0: never
}

func (c *tableColumn) width() int {
	widest := width(c.head)
	for _, text := range c.cells {
		widest = max(widest, width(text))
	}
	return widest
}

// addRow adds a cell to each column.
func addRow(columns []tableColumn, cells ...string) {
	for i, text := range cells {
		columns[i].cells = append(columns[i].cells, text)
	}
}

// tableLines returns a table in lines of at most limit columns of characters, as long as some table
// column can be dropped. All columns are aligned to the right.
func tableLines(columns []tableColumn, limit int) []string {
	const gap = 2
	for {
		total, most := -gap, 0
		for i := range columns {
			total += gap + columns[i].width()
			if columns[i].spare > columns[most].spare {
				most = i
			}
		}
		if total <= limit || columns[most].spare == 0 {
			break
		}
		columns = append(columns[:most:most], columns[most+1:]...)
	}
	lines := make([]string, 1+len(columns[0].cells))
	for i := range columns {
		c := &columns[i]
		for y := range lines {
			text := c.head
			if y > 0 {
				text = c.cells[y-1]
			}
			if i > 0 {
				lines[y] += strings.Repeat(" ", gap)
			}
			lines[y] += strings.Repeat(" ", c.width()-width(text)) + text
		}
	}
	return lines
}

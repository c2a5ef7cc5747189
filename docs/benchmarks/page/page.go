// Package page puts tables that commands make into pages of the guide.
package page

import (
	"errors"
	"os"
	"strings"
)

// Insert replaces the table of a page. It stands between two lines that name the command, such as "wasm".
func Insert(page, command, table string) error {
	text, err := os.ReadFile(page)
	if err != nil {
		return err
	}
	begin := "<!-- made by docs/benchmarks/" + command + ": begin -->\n"
	end := "<!-- made by docs/benchmarks/" + command + ": end -->\n"
	head, rest, begins := strings.Cut(string(text), begin)
	_, tail, ends := strings.Cut(rest, end)
	if !begins || !ends {
		return errors.New(page + " lacks the lines between which the table goes")
	}
	return os.WriteFile(page, []byte(head+begin+"\n"+table+"\n"+end+tail), 0o644)
}

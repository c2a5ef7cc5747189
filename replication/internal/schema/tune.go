package schema

// This file sets the tables of fields: orders that replace those of the codes of residuals, see
// [delta.Field.Orders].

import (
	"errors"
	"fmt"
	"strings"

	"github.com/arche-replicate/arche-replicate/delta"
	"github.com/arche-replicate/arche-replicate/replication/internal/field"
)

// tuneKey is the key of a table in a field's line of the schema text.
const tuneKey = "orders="

// Tune sets the tables of a schema's registered fields: items NAME=DIGITS, separated by spaces. A name is one
// that begins a line of the schema text.
func Tune(s *Schema, text string) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.Layout != nil {
		return errors.New("Tune: the schema is in use: tune it before making a server or client of it")
	}
	for item := range strings.FieldsSeq(text) {
		name, digits, ok := strings.Cut(item, "=")
		if !ok {
			return fmt.Errorf("Tune: %.40q has no equals sign: write Component.Field=ORDERS", item)
		}
		orders, err := parseOrders(digits)
		if err != nil {
			return fmt.Errorf("Tune: %.40s=%.40s: %w", name, digits, err)
		}
		if err := tuneField(s, name, digits, orders); err != nil {
			return fmt.Errorf("Tune: %w", err)
		}
	}
	return nil
}

// parseOrders returns orders that are written as hexadecimal digits.
func parseOrders(digits string) (orders []uint8, err error) {
	if len(digits) < 1 || len(digits) > delta.MaxOrders {
		return nil, fmt.Errorf("there are %d orders: use 1 to %d digits", len(digits), delta.MaxOrders)
	}
	for _, d := range []byte(digits) {
		k := strings.IndexByte("0123456789abcdef", d)
		if k < 0 {
			return nil, fmt.Errorf("%q is no digit from 0 to f", rune(d))
		}
		orders = append(orders, uint8(k))
	}
	return orders, nil
}

// tuneField sets the table of one line of the schema text.
func tuneField(s *Schema, name, digits string, orders []uint8) error {
	for k := range s.Components {
		c := &s.Components[k]
		line := -1
		var codec *field.Codec // of the line; elements of an array share it
		for i := range c.Columns {
			if q := c.Columns[i].Codec; q != codec {
				line, codec = line+1, q
				if own, rest, _ := strings.Cut(c.Lines[line], " "); own == name {
					return tuneLine(&c.Lines[line], rest, codec, digits, orders)
				}
			}
		}
	}
	return fmt.Errorf("the schema has no field %.80q: register all types first; "+
		"if they have changed, make the tables anew with examples/trace -tune", name)
}

// tuneLine sets the table of a codec, and adds it to its line, which has rest behind its name.
func tuneLine(line *string, rest string, codec *field.Codec, digits string, orders []uint8) error {
	name, _, _ := strings.Cut(*line, " ")
	switch {
	case !codec.Extrapolated():
		return fmt.Errorf("%s is not extrapolated, so it takes no orders", name)
	case codec.Orders != nil:
		return fmt.Errorf("%s is tuned twice", name)
	}
	codec.Orders = orders
	separator := " "
	if strings.Contains(rest, " ") {
		separator = ","
	}
	*line += separator + tuneKey + digits
	return nil
}

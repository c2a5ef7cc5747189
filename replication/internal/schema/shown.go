package schema

// This file has how components are shown between two states: what clients interpolate by, and servers judge by. The
// tags of fields have the rest, see [field.Codec].

import (
	"errors"
	"fmt"
	"reflect"
	"slices"

	"github.com/arche-replicate/arche-replicate/replication/internal/field"
)

// Shown is how a component is shown between two states.
type Shown struct {
	Newest   bool    // it is not: clients show the newest state
	Snap     float64 // a longer way per tick is a teleport; 0: none is
	Velocity int     // the component with the velocities of its linear floats, in their order, if PerTick is not 0
	PerTick  float64 // the way that a velocity of 1 covers in a tick
}

// maxPlaces is the largest number of coordinates.
const maxPlaces = 3

// setShown sets how a component is shown. The schema is locked.
func setShown(s *Schema, c *Component, o *Options) error {
	if err := checkPlace(s, c); err != nil {
		return err
	}
	c.Shown = Shown{Newest: o.Newest, Snap: o.Snap, PerTick: o.PerTick}
	var err error
	switch moves := slices.ContainsFunc(c.Columns, func(col Column) bool { return col.Codec.IsDistance() }); {
	case c.Resource && (o.Newest || o.Snap != 0 || o.PerTick != 0):
		err = errors.New("the options Newest, Snap and Hermite are for components: " +
			"nothing is shown between two values of a resource")
	case o.Newest && (o.Snap != 0 || o.PerTick != 0):
		err = errors.New("the option Newest goes without Snap and Hermite: nothing is shown between two states")
	case o.Snap != 0 && !moves:
		err = errors.New("the option Snap measures how far fields move linearly, and none does: " +
			"floats do without hold and jump, and integers with linear")
	case o.PerTick != 0:
		c.Shown.Velocity, err = velocity(s, c, o.Velocity)
	}
	if err != nil {
		return fmt.Errorf("%s: %w", c.Name, err)
	}
	return nil
}

// checkPlace returns an error if the coordinates of a component are too many, or not the only ones.
func checkPlace(s *Schema, c *Component) error {
	places := Places(c)
	if len(places) == 0 {
		return nil
	}
	first := fullPath(c.Name, c.Columns[places[0]].Path)
	if len(places) > maxPlaces {
		return fmt.Errorf("%s: place is given to %d fields of %s: a place has %d coordinates at most",
			fullPath(c.Name, c.Columns[places[maxPlaces]].Path), len(places), c.Name, maxPlaces)
	}
	if k := Place(s); k >= 0 {
		other := &s.Components[k]
		return fmt.Errorf("%s: place is given to %s already: one component has the place of an entity; "+
			"Field replaces the tag of a type that several components share",
			first, fullPath(other.Name, other.Columns[Places(other)[0]].Path))
	}
	return nil
}

// Places returns the columns that are coordinates.
func Places(c *Component) (columns []int) {
	for i := range c.Columns {
		if c.Columns[i].Codec.Place {
			columns = append(columns, i)
		}
	}
	return columns
}

// Place returns the component that has coordinates, or -1.
func Place(s *Schema) int {
	return slices.IndexFunc(s.Components, func(c Component) bool { return len(Places(&c)) > 0 })
}

// velocity returns the number of the component with the velocities of another one.
func velocity(s *Schema, c *Component, t reflect.Type) (int, error) {
	k := slices.IndexFunc(s.Components, func(v Component) bool { return v.Typ == t && !v.Resource })
	if k < 0 {
		return k, fmt.Errorf("the option Hermite needs the component %v: register it before %s", t, c.Name)
	}
	v := &s.Components[k]
	if v.condition != c.condition {
		return k, fmt.Errorf("the option Hermite: %s and %s have other conditions: they must come together",
			c.Name, v.Name)
	}
	own, other := linearFloats(c), linearFloats(v)
	if len(own) == 0 || !slices.Equal(own, other) {
		return k, fmt.Errorf("the option Hermite: %s has %d floats that move linearly, and %s has %d: "+
			"each needs one of the same type with its velocity, in their order", c.Name, len(own), v.Name, len(other))
	}
	return k, nil
}

// linearFloats returns the kinds of the floats that move linearly.
func linearFloats(c *Component) (kinds []reflect.Kind) {
	for i := range c.Columns {
		if q := c.Columns[i].Codec; q.IsFloat() && c.Columns[i].StandIn == nil {
			kinds = append(kinds, q.Kind)
		}
	}
	return kinds
}

// shownText returns how a component is shown, as the line with its name ends.
func shownText(s *Schema, c *Component) (text string) {
	if c.Shown.Newest {
		text += " newest"
	}
	if c.Shown.Snap != 0 {
		text += " snap=" + field.NumberText(c.Shown.Snap)
	}
	if c.Shown.PerTick != 0 {
		text += " hermite=" + field.NumberText(c.Shown.PerTick) + "," + s.Components[c.Shown.Velocity].Name
	}
	return text
}

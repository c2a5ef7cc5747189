package main

import (
	"fmt"
	"math"
	"reflect"
	"slices"
	"strconv"
	"strings"
	"time"
)

// retags are tags of fields that replace those of the trace, by Component.Field.
type retags map[string]string

// apply returns the components with the tags replaced. The given ones are not changed.
func (t retags) apply(components []component) []component {
	components = slices.Clone(components)
	for i := range components {
		c := &components[i]
		c.fields = slices.Clone(c.fields)
		for j := range c.fields {
			if tag, ok := t[c.fields[j].fullName(c.name)]; ok {
				c.fields[j].tag = tag
			}
		}
		c.typ = structOf(c.name, c.fields)
	}
	return components
}

// retag reads the following rows as if the trace had other tags.
func (r *reader) retag(t retags) {
	if len(t) > 0 {
		r.components = t.apply(r.components)
		r.row = r.newRow()
	}
}

// fullName returns the field's name in tables.
func (f *field) fullName(component string) string {
	if f.name == "" {
		return component
	}
	return component + "." + f.name
}

// precisionKeys are the keys of a tag that set the precision of a field.
var precisionKeys = []string{"step", "precision", "bits"}

// precision returns the item of a tag that sets the precision, such as step=0.01, as key and value.
// There is none if values are exact.
func (f *field) precision() (key, value string, ok bool) {
	for item := range strings.SplitSeq(f.tag, ",") {
		key, value, ok := strings.Cut(item, "=")
		if ok && slices.Contains(precisionKeys, key) {
			return key, value, true
		}
	}
	return "", "", false
}

// scaled returns the field's tag with half or twice the step, and its new item. Bits are one more
// or one less. The error is a reason in one sentence. The library checks whether the tag is valid.
func (f *field) scaled(half bool) (tag, item string, err error) {
	key, value, _ := f.precision()
	other := ""
	switch {
	case key == "bits":
		other, err = scaleBits(value, half)
	case f.isInteger():
		other, err = scaleInteger(value, half)
	default:
		other, err = scaleNumber(value, half)
	}
	if err != nil {
		return "", "", err
	}
	items := strings.Split(f.tag, ",")
	items[slices.Index(items, key+"="+value)] = key + "=" + other
	return strings.Join(items, ","), key + "=" + other, nil
}

// scalar returns the type of the field, or of an array's elements.
func (f *field) scalar() reflect.Type {
	typ := f.typ
	for range f.dims {
		typ = typ.Elem()
	}
	return typ
}

// isInteger reports whether the field is made of integers.
func (f *field) isInteger() bool {
	kind := f.scalar().Kind()
	return kind >= reflect.Int && kind <= reflect.Uint64
}

// float reports whether the field is made of floats.
func (f *field) float() bool {
	kind := f.scalar().Kind()
	return kind == reflect.Float32 || kind == reflect.Float64
}

func scaleBits(value string, half bool) (string, error) {
	bits, err := strconv.Atoi(value)
	if half {
		return strconv.Itoa(bits + 1), err
	}
	return strconv.Itoa(bits - 1), err
}

func scaleNumber(value string, half bool) (string, error) {
	v, err := strconv.ParseFloat(value, 64)
	if half {
		return strconv.FormatFloat(v/2, 'g', -1, 64), err
	}
	return strconv.FormatFloat(v*2, 'g', -1, 64), err
}

// scaleInteger scales the step of an integer, which may be written as a duration.
func scaleInteger(value string, half bool) (string, error) {
	format := func(v int64) string { return strconv.FormatInt(v, 10) }
	v, err := strconv.ParseInt(value, 10, 64)
	if err != nil {
		d, notDuration := time.ParseDuration(value)
		if notDuration != nil {
			return "", fmt.Errorf("%q is neither a whole number nor a duration", value)
		}
		v, format = int64(d), func(v int64) string { return time.Duration(v).String() }
	}
	switch {
	case half && v%2 != 0:
		return "", fmt.Errorf("a step of %s has no integer half", value)
	case half:
		return format(v / 2), nil
	case v > math.MaxInt64/2:
		return "", fmt.Errorf("twice %s is more than an int64 holds", value)
	}
	return format(2 * v), nil
}

// stepOfOne reports whether the field is an integer in steps of 1, which are exact.
func (f *field) stepOfOne() bool {
	key, value, _ := f.precision()
	return key == "step" && f.isInteger() && (value == "1" || value == "1ns")
}

// unscaled describes how the values of a field without a step are sent.
func (f *field) unscaled() string {
	items := strings.Split(f.tag, ",")
	switch {
	case slices.Contains(items, "half"):
		return "half float"
	case f.float():
		return "raw"
	}
	return "exact"
}

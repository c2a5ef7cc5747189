package field

// This file parses and writes the numbers of tags, and knows which integers a kind can hold.

import (
	"math"
	"reflect"
	"strconv"
	"time"
)

// isInteger reports whether values of the kind are integers that can be replicated.
func isInteger(kind reflect.Kind) bool {
	return reflect.Int <= kind && kind <= reflect.Int64 || isUnsigned(kind)
}

func isUnsigned(kind reflect.Kind) bool { return reflect.Uint <= kind && kind <= reflect.Uint64 }

// fullWidth returns the bits of an integer without a range. int and uint have 64 on every machine.
func fullWidth(kind reflect.Kind) int {
	switch kind {
	case reflect.Int8, reflect.Uint8:
		return 8
	case reflect.Int16, reflect.Uint16:
		return 16
	case reflect.Int32, reflect.Uint32:
		return 32
	}
	return 64
}

// parseInteger parses a whole number, also one written as a float such as 1e6.
func parseInteger(text string) (int64, bool) {
	if v, err := strconv.ParseInt(text, 10, 64); err == nil {
		return v, true
	}
	f, err := strconv.ParseFloat(text, 64)
	if err != nil || f != math.Trunc(f) || !(f >= -1<<53 && f <= 1<<53) {
		return 0, false
	}
	return int64(f), true
}

// parseUnsigned is parseInteger for numbers that may exceed an int64.
func parseUnsigned(text string) (uint64, bool) {
	if v, err := strconv.ParseUint(text, 10, 64); err == nil {
		return v, true
	}
	v, ok := parseInteger(text)
	return uint64(v), ok && v >= 0
}

// parseSigned is parseInteger that also takes a duration such as 1m30s, in nanoseconds, where the
// integer has 64 bits.
func parseSigned(text string, width int) (int64, bool) {
	if v, ok := parseInteger(text); ok {
		return v, true
	}
	d, err := time.ParseDuration(text)
	return int64(d), err == nil && width == 64
}

// NumberText is the one way a float is written in a schema text.
func NumberText(v float64) string { return strconv.FormatFloat(v+0, 'g', -1, 64) }

package main

import (
	"errors"
	"fmt"
	"reflect"
	"strconv"
	"strings"
)

// scalars are the types that a column may have, by their names in Go.
var scalars = map[string]reflect.Type{
	"bool":    reflect.TypeFor[bool](),
	"int8":    reflect.TypeFor[int8](),
	"int16":   reflect.TypeFor[int16](),
	"int32":   reflect.TypeFor[int32](),
	"int64":   reflect.TypeFor[int64](),
	"uint8":   reflect.TypeFor[uint8](),
	"uint16":  reflect.TypeFor[uint16](),
	"uint32":  reflect.TypeFor[uint32](),
	"uint64":  reflect.TypeFor[uint64](),
	"float32": reflect.TypeFor[float32](),
	"float64": reflect.TypeFor[float64](),
}

const scalarNames = "bool, int8 to int64, uint8 to uint64, float32, float64"

// parseInto sets v, a scalar, to the value in a cell. Numbers are parsed at the width of the type,
// so that a float32 is the one nearest to the decimal, as it was when the game wrote it.
func parseInto(v reflect.Value, cell string) error {
	var err error
	switch bits := 0; v.Kind() {
	case reflect.Bool:
		switch cell {
		case "true":
			v.SetBool(true)
		case "false":
			v.SetBool(false)
		default:
			return fmt.Errorf("%q is not a bool: write true or false", cell)
		}
	case reflect.Float32, reflect.Float64:
		var f float64
		bits = v.Type().Bits()
		if f, err = strconv.ParseFloat(cell, bits); err == nil {
			v.SetFloat(f)
		}
	case reflect.Int8, reflect.Int16, reflect.Int32, reflect.Int64:
		var i int64
		bits = v.Type().Bits()
		if i, err = strconv.ParseInt(cell, 10, bits); err == nil {
			v.SetInt(i)
		}
	default:
		var u uint64
		bits = v.Type().Bits()
		if u, err = strconv.ParseUint(cell, 10, bits); err == nil {
			v.SetUint(u)
		}
	}
	return explain(err, cell, v.Type().String())
}

// parseNumber parses a tick or an entity number.
func parseNumber(cell string, bits int) (uint64, error) {
	u, err := strconv.ParseUint(cell, 10, bits)
	if err != nil {
		return 0, explain(err, cell, fmt.Sprintf("uint%d", bits))
	}
	return u, nil
}

// explain turns an error of package strconv into a readable one.
func explain(err error, cell, typeName string) error {
	switch {
	case err == nil:
		return nil
	case errors.Is(err, strconv.ErrRange):
		return fmt.Errorf("%q does not fit %s", cell, article(typeName))
	}
	return fmt.Errorf("%q is not %s", cell, article(typeName))
}

func article(typeName string) string {
	if strings.HasPrefix(typeName, "int") {
		return "an " + typeName
	}
	return "a " + typeName
}

package schema

// This file moves component values between memory and rows. It follows raw pointers: it relies on p
// being the address of n values of c.Typ, one behind the other, and on offsets that come from
// package reflect. Tests compare each function with a slow twin that goes through package reflect.

import (
	"bytes"
	"fmt"
	"reflect"
	"slices"
	"strings"
	"unsafe"

	"github.com/arche-replicate/arche-replicate/replication/internal/bitset"
	"github.com/arche-replicate/arche-replicate/replication/internal/field"
	"github.com/arche-replicate/arche-replicate/replication/internal/wire"
	"github.com/mlange-42/arche/ecs"
)

// ReadBlock is the number of values that are read column by column at a time, so that their rows
// stay in the nearest cache.
const ReadBlock = 256

// ReadColumn quantises n consecutive component values starting at p into dst, row after row, and
// returns how many numbers were out of range and had to be clamped. It does not allocate.
//
// Precondition: len(dst) >= n*c.Words.
func (c *Component) ReadColumn(dst []uint32, p unsafe.Pointer, n int) (clamped int) {
	for n > 0 && len(c.Columns) > 0 {
		block := min(n, ReadBlock)
		for i := 0; i < len(c.Columns); i++ {
			col := &c.Columns[i]
			switch from := unsafe.Add(p, col.offset); {
			case col.StandIn != nil:
			case col.three:
				clamped += col.Codec.ReadThree(dst[col.Word:block*c.Words], c.Words, from, c.Size)
				i += 2
			default:
				clamped += col.Codec.Read(dst[col.Word:block*c.Words], c.Words, from, c.Size)
			}
		}
		for _, in := range c.StandIns {
			clamped += c.readStandIn(in, dst, p, block)
		}
		if n -= block; n > 0 { // never point past the last value
			dst, p = dst[block*c.Words:], unsafe.Add(p, uintptr(block)*c.Size)
		}
	}
	return clamped
}

// Holds reports whether recorded codes of the component may be held.
func (c *Component) Holds() bool {
	return slices.ContainsFunc(c.Columns, func(col Column) bool { return col.Codec.Holds() })
}

// Near returns a mask for each word of a row, for [history.Rows.Keep].
func (c *Component) Near() (masks []uint32) {
	for i := range c.Columns {
		masks = c.Columns[i].Codec.AppendNear(masks)
	}
	return masks
}

// Keeps reports whether the component value at p, which has the codes in row, is to keep the row that was recorded
// last.
func (c *Component) Keeps(row, recorded []uint32, p unsafe.Pointer) bool {
	for i := range c.Columns {
		if col := &c.Columns[i]; col.StandIn == nil &&
			!field.Keeps(col.Codec, row[col.Word:], recorded[col.Word:], unsafe.Add(p, col.offset)) {
			return false
		}
	}
	for _, in := range c.StandIns {
		from, to := in.Word, in.Word+in.Values.Words
		if own, old := row[from:to], recorded[from:to]; !slices.Equal(own, old) &&
			!in.Conversion.keeps(&in.Values, own, old, unsafe.Add(p, in.Offset)) {
			return false
		}
	}
	return true
}

// Bytes returns the number of bytes of each value that can show a change.
func (c *Component) Bytes() uintptr {
	if c.Words == 0 || c.Volatile {
		return 0
	}
	return c.Size
}

// SameBytes reports whether n consecutive values starting at p are known to be unchanged since
// their bytes were old.
func (c *Component) SameBytes(old []byte, p unsafe.Pointer, n int) bool {
	if c.Volatile {
		return false
	}
	size := n * int(c.Bytes())
	return bytes.Equal(old[:size], unsafe.Slice((*byte)(p), size))
}

// KeepBytes copies the bytes of n consecutive values starting at p.
func (c *Component) KeepBytes(dst []byte, p unsafe.Pointer, n int) {
	copy(dst, unsafe.Slice((*byte)(p), n*int(c.Bytes())))
}

// Room returns the address of memory for n values. The garbage collector looks for pointers there
// only if the component is volatile, since only then the user's functions follow them.
func (c *Component) Room(n int) unsafe.Pointer {
	if c.Volatile {
		return reflect.MakeSlice(reflect.SliceOf(c.Typ), n, n).UnsafePointer()
	}
	return unsafe.Pointer(unsafe.SliceData(make([]uint64, (uintptr(n)*c.Size+7)/8)))
}

// CopyTo copies the value at p to the place of value i at dst.
func (c *Component) CopyTo(dst unsafe.Pointer, i int, p unsafe.Pointer) {
	if c.Volatile {
		reflect.NewAt(c.Typ, unsafe.Add(dst, uintptr(i)*c.Size)).Elem().Set(reflect.NewAt(c.Typ, p).Elem())
	} else if c.Words > 0 {
		copy(unsafe.Slice((*byte)(unsafe.Add(dst, uintptr(i)*c.Size)), c.Size), unsafe.Slice((*byte)(p), c.Size))
	}
}

// Write restores a row into the component value at p. It leaves references and fields that are not
// replicated alone, and does not allocate but for strings.
//
// Precondition: c.ValidRow(row); codes that no quantiser produces become zeros.
func (c *Component) Write(p unsafe.Pointer, row []uint32) {
	if len(c.StandIns) > 0 {
		c.writeStandIns(p, row)
		return
	}
	for i := range c.Columns {
		col := &c.Columns[i]
		col.Codec.Write(unsafe.Add(p, col.offset), row[col.Word:])
	}
}

// Written is a row that is to be written into the component value at an address.
type Written = field.Written

// WriteRows restores rows into component values, column by column. It is [Component.Write] for each.
//
// Precondition: c.Simple(), and that of Write.
func (c *Component) WriteRows(rows []Written) {
	for i := range c.Columns {
		col := &c.Columns[i]
		col.Codec.WriteColumn(rows, col.offset, col.Word)
	}
}

// RefersToAny reports whether one of n consecutive values starting at p refers to an entity whose
// ID is in the set.
func (c *Component) RefersToAny(p unsafe.Pointer, n int, ids bitset.Set) bool {
	for _, k := range c.References {
		col := &c.Columns[k]
		if col.Codec.Op != field.OpEntity {
			continue
		}
		for i, at := 0, col.offset; i < n; i, at = i+1, at+c.Size {
			if ids.Holds((*ecs.Entity)(unsafe.Add(p, at)).ID()) {
				return true
			}
		}
	}
	return false
}

// ReadEntity returns the entity to which a column of the component value at p refers.
func (c *Component) ReadEntity(p unsafe.Pointer, column int) ecs.Entity {
	return *(*ecs.Entity)(unsafe.Add(p, c.Columns[column].offset))
}

// WriteEntity makes a column of the component value at p refer to e.
func (c *Component) WriteEntity(p unsafe.Pointer, column int, e ecs.Entity) {
	*(*ecs.Entity)(unsafe.Add(p, c.Columns[column].offset)) = e
}

// writeStandIns is Write for a component that has stand-ins.
func (c *Component) writeStandIns(p unsafe.Pointer, row []uint32) {
	for i := range c.Columns {
		if col := &c.Columns[i]; col.StandIn == nil {
			col.Codec.Write(unsafe.Add(p, col.offset), row[col.Word:])
		}
	}
	c.WriteConverted(p, row)
}

// WriteConverted is [Component.Write] for nothing but the values that the user's functions convert.
func (c *Component) WriteConverted(p unsafe.Pointer, row []uint32) {
	for _, in := range c.StandIns {
		in.Conversion.Write(&in.Values, unsafe.Add(p, in.Offset), row[in.Word:][:in.Values.Words])
	}
}

// readStandIn quantises one of the stand-ins of n consecutive component values starting at p.
func (c *Component) readStandIn(in *StandIn, dst []uint32, p unsafe.Pointer, n int) (clamped int) {
	p = unsafe.Add(p, in.Offset)
	for i := range n {
		row := dst[i*c.Words+in.Word:][:in.Values.Words]
		clamped += in.Conversion.Read(&in.Values, row, unsafe.Add(p, uintptr(i)*c.Size))
	}
	return clamped
}

// Fits returns an error if a text of the component value at p is too long.
func (c *Component) Fits(p unsafe.Pointer) error {
	for i := range c.Columns {
		col := &c.Columns[i]
		if col.StandIn != nil {
			continue
		}
		n := 0
		switch at := unsafe.Add(p, col.offset); col.Codec.Op {
		case field.OpString:
			n = len(*(*string)(at))
		case field.OpBytes:
			n = len(field.TrimZeros(unsafe.Slice((*byte)(at), col.Codec.Size)))
		default:
			continue
		}
		if n > int(col.Codec.Max) {
			return c.TextTooLong(col, n)
		}
	}
	for _, in := range c.StandIns {
		if err := in.Conversion.Fits(&in.Values, unsafe.Add(p, in.Offset)); err != nil {
			return err
		}
	}
	return nil
}

// HoldStrings copies the strings of n consecutive component values starting at p.
func (c *Component) HoldStrings(held []string, p unsafe.Pointer, n int) {
	for at := uintptr(0); n > 0; n, at = n-1, at+c.Size {
		for k, i := range c.Strings {
			held[k] = *(*string)(unsafe.Add(p, at+c.Columns[i].offset))
		}
		held = held[len(c.Strings):]
	}
}

// CheckTexts returns an error if a text of the message at p is longer than its max. In a component,
// the text would be cut and the cut counted; the sender of a message gets the error.
func (c *Component) CheckTexts(p unsafe.Pointer) error {
	if err := c.Fits(p); err != nil {
		return fmt.Errorf("%w: %s", ErrMessageTooLarge, strings.TrimPrefix(err.Error(), "replication: "))
	}
	return nil
}

// Value returns the value that a row has for a column: a wire.NetID for references. For a column of a stand-in, which
// is no field by itself, it is the value of the component.
func (c *Component) Value(column int, row []uint32) any {
	col := &c.Columns[column]
	if col.Codec.Op == field.OpEntity || col.Codec.Op == field.OpRelation {
		words := row[col.Word:][:2]
		if words[0] == 0 {
			return wire.NetID{}
		}
		return wire.NetID{Slot: words[0] - 1, Generation: uint16(words[1])}
	}
	v := reflect.New(c.Typ)
	c.Write(v.UnsafePointer(), row)
	return col.Of(v.Elem())
}

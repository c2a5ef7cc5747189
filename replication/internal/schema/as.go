package schema

// This file has the conversion of the option As.

import (
	"reflect"
	"sync/atomic"
	"unsafe"

	"github.com/arche-replicate/arche-replicate/replication/internal/field"
)

// Twin replicates a T as an S, which two functions of the user convert into one another.
type Twin[T, S any] struct {
	To    func(*T, *S)
	From  func(*S, *T)
	spare atomic.Pointer[S] // a zero S that is used again, or nil while somebody uses it
}

func (w *Twin[T, S]) option() string { return "As" }

func (w *Twin[T, S]) Source() reflect.Type { return reflect.TypeFor[T]() }

func (w *Twin[T, S]) describe(f *Flattener, at FieldPlace, tag field.Tag) error {
	c := f.Component
	c.Typ = reflect.TypeFor[S]()
	c.Size = c.Typ.Size()
	return f.Value(c.Typ, at, tag)
}

// take returns a zero S, the spare one if nobody uses it.
func (w *Twin[T, S]) take() *S {
	if s := w.spare.Swap(nil); s != nil {
		return s
	}
	return new(S)
}

// giveBack makes s the spare one.
func (w *Twin[T, S]) giveBack(s *S) {
	var zero S
	*s = zero
	w.spare.Store(s)
}

func (w *Twin[T, S]) Read(c *Component, row []uint32, p unsafe.Pointer) (clamped int) {
	s := w.take()
	w.To((*T)(p), s)
	clamped = c.ReadColumn(row, unsafe.Pointer(s), 1)
	w.giveBack(s)
	return clamped
}

func (w *Twin[T, S]) keeps(c *Component, row, recorded []uint32, p unsafe.Pointer) (kept bool) {
	if c.Holds() {
		s := w.take()
		w.To((*T)(p), s)
		kept = c.Keeps(row, recorded, unsafe.Pointer(s))
		w.giveBack(s)
	}
	return kept
}

func (w *Twin[T, S]) Write(c *Component, p unsafe.Pointer, row []uint32) {
	s := w.take()
	c.Write(unsafe.Pointer(s), row)
	w.From(s, (*T)(p))
	w.giveBack(s)
}

func (w *Twin[T, S]) Fits(c *Component, p unsafe.Pointer) error {
	s := w.take()
	defer w.giveBack(s)
	w.To((*T)(p), s)
	return c.Fits(unsafe.Pointer(s))
}

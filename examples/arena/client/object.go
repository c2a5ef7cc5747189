//go:build js

package main

import "syscall/js"

// object is one for the page. It is filled field by field: maps would take three times as much code.
type object struct{ js js.Value }

func newObject() object { return object{js.Global().Get("Object").New()} }

func (o object) text(name, v string)           { o.js.Set(name, v) }
func (o object) number(name string, v float64) { o.js.Set(name, v) }
func (o object) integer(name string, v int)    { o.js.Set(name, v) }
func (o object) truth(name string, v bool)     { o.js.Set(name, v) }
func (o object) object(name string, v object)  { o.js.Set(name, v.js) }

func (o object) list(name string, v list) { o.js.Set(name, v.js) }

// list is an array for the page.
type list struct{ js js.Value }

func newList() list { return list{js.Global().Get("Array").New()} }

func (l list) add(v js.Value) { l.js.Call("push", v) }

// known sets a number, or null.
func (o object) known(name string, v float64, known bool) {
	if known {
		o.js.Set(name, v)
	} else {
		o.js.Set(name, nil)
	}
}

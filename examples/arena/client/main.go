//go:build js

// Client is a player's end of the arena in a web page: the game's Player, connected by package web; or a recording that
// is played there. It draws nothing; the page does, with what the functions of globalThis.arena return.
package main

import (
	"context"
	"math"
	"syscall/js"
)

func main() {
	page := exports{js.Global().Get("Object").New()}
	if file := js.Global().Get("arenaRecording"); file.Truthy() {
		page.replay(file)
	} else {
		newClient().export(page)
	}
	js.Global().Set("arena", page.js)
	<-context.Background().Done() // the page calls from now on
}

// exports is what the page calls.
type exports struct{ js js.Value }

func (e exports) function(name string, f func(args []js.Value) any) {
	e.js.Set(name, js.FuncOf(func(_ js.Value, args []js.Value) any { return f(args) }))
}

// query returns a parameter of the page's address.
func query(name string) string {
	v := js.Global().Get("URLSearchParams").New(js.Global().Get("location").Get("search")).Call("get", name)
	if v.Type() != js.TypeString {
		return ""
	}
	return v.String()
}

// numberOf returns a number of the page; 0 for what is none.
func numberOf(v js.Value) float64 {
	if v.Type() != js.TypeNumber || math.IsNaN(v.Float()) {
		return 0
	}
	return v.Float()
}

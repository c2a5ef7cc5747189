//go:build js

package main

import (
	"encoding/binary"
	"math"
	"syscall/js"
	"time"
)

// ghosts are the ships as the server has them now, past the bad network.
type ghosts struct {
	wanted bool
	asking bool
	ships  []ghost
}

// ghost is a ship of the server.
type ghost struct {
	number      int
	x, y, angle float32
}

// ghostBytes is how many bytes a ship takes in the answer of /debug/truth, after those of a tick.
const ghostBytes = 16

// show turns them on or off.
func (g *ghosts) show(on bool) {
	g.wanted = on
	if on && !g.asking {
		g.asking = true
		go g.ask()
	}
}

// ask asks the server, again and again while ghosts are wanted.
func (g *ghosts) ask() {
	defer func() { g.asking, g.ships = false, nil }()
	for g.wanted {
		if data, ok := get("/debug/truth"); ok {
			g.ships = g.ships[:0]
			for ; len(data) >= 4+ghostBytes; data = data[ghostBytes:] {
				row := data[4:]
				word := func(i int) uint32 { return binary.LittleEndian.Uint32(row[4*i:]) }
				g.ships = append(g.ships, ghost{
					int(word(0)), math.Float32frombits(word(1)), math.Float32frombits(word(2)),
					math.Float32frombits(word(3)),
				})
			}
		} else {
			g.ships = g.ships[:0]
			time.Sleep(time.Second)
		}
		time.Sleep(30 * time.Millisecond)
	}
}

// get fetches bytes.
func get(url string) ([]byte, bool) {
	done := make(chan []byte, 1)
	bytes := js.FuncOf(func(_ js.Value, args []js.Value) any {
		array := js.Global().Get("Uint8Array").New(args[0])
		data := make([]byte, array.Length())
		js.CopyBytesToGo(data, array)
		done <- data
		return nil
	})
	fail := js.FuncOf(func(js.Value, []js.Value) any {
		done <- nil
		return nil
	})
	response := js.FuncOf(func(_ js.Value, args []js.Value) any {
		if !args[0].Get("ok").Bool() {
			return js.Global().Get("Promise").Call("reject", args[0].Get("statusText"))
		}
		return args[0].Call("arrayBuffer")
	})
	defer bytes.Release()
	defer fail.Release()
	defer response.Release()
	js.Global().Call("fetch", url).Call("then", response).Call("then", bytes, fail)
	data := <-done
	return data, data != nil
}

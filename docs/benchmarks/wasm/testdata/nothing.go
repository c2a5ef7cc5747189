package main

import "syscall/js"

func main() {
	js.Global().Set("frame", js.FuncOf(func(js.Value, []js.Value) any { return nil }))
	select {}
}

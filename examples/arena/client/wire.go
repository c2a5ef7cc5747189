//go:build js

package main

import "syscall/js"

// wire is what lies between package web and the sockets of the page: it knows which kind of socket is
// open, and can lose everything that is sent.
type wire struct{ js js.Value }

// tap wraps the function of the handler's script that opens sockets.
const tap = `
const wire = {kind: "", stopped: false}, script = globalThis.archeReplicate, dial = script.dial
if (!udp) delete globalThis.WebTransport
script.dial = (url, opened, ended) => {
	const socket = dial(url,
		(kind, mtu) => { wire.kind = kind; opened(kind, mtu) },
		(status, text) => { wire.kind = ""; ended(status, text) })
	const push = socket.push
	socket.push = () => wire.stopped ? 1 : push()
	return socket
}
return wire`

func tapWire(onlyWebSocket bool) *wire {
	return &wire{js.Global().Get("Function").New("udp", tap).Invoke(!onlyWebSocket)}
}

func (w *wire) stop(on bool) { w.js.Set("stopped", on) }

// kind returns "WebTransport", "WebSocket", or "" without a socket.
func (w *wire) kind() string { return w.js.Get("kind").String() }

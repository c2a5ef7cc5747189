// Package link is what transports have in common: it connects the goroutines of sockets with the one of a loop.
//
// At the server, a [Hub] has a [Link] for each connection. Goroutines of sockets open links and deliver packets; Poll,
// on the loop's goroutine, makes peers of them. At the client, a [Conn] keeps one socket open.
package link

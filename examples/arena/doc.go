// Arena is Dogfight: bots in space ships hunt each other in an Arche world that a server owns.
// Clients replicate it over a network that loses, delays, duplicates and reorders packets. Each
// client has a player, also a bot, which joins with a message, sees only the client's world, and
// steers a ship with inputs. The other ships are steered by bots of the server.
//
//	go run ./examples/arena
//
// plays for ten seconds with a server and some clients in one process, shows the fight, and ends
// with a table: the cost of replication, the cost of plain snapshots, and whether all worlds became
// equal. On a terminal it draws the fight in place, on the server and on a client; elsewhere, and
// if TERM is dumb, it prints a line per second. It honours NO_COLOR, and draws in ASCII unless the
// locale has UTF-8.
//
//	go run ./examples/arena -headless -ticks 1200 -bots 100 -clients 8 -loss 0.1 -latency 60ms -json
//
// does the same as fast as the machine allows, for scripts. With -transport udp every client has a
// socket of its own. Server and clients can also run in separate processes, on different machines:
//
//	go run ./examples/arena -serve 127.0.0.1:9000 -clients 8
//	go run ./examples/arena -connect 127.0.0.1:9000 -clients 8
//
// # Files
//
// The game is in components.go, game.go, ships.go, scene.go, bots.go, players.go, bullets.go,
// powerups.go and match.go. It knows nothing about a network. host.go adds a [replication.Server]
// to it, and mirror.go is a world with a [replication.Client]; these two show how to use the
// library. messages.go has the messages and inputs: events.go handles them on the server, and
// pilot.go is the player on a client. line.go, memory.go and udp.go carry datagrams; local.go,
// serve.go with lobby.go, and connect.go with waiting.go are the three ways to run everything.
//
// The output is a picture, see picture.go: survey.go reads a world, the server's or a client's,
// field.go draws it on the canvas of canvas.go in the style of style.go, and cost.go and figures.go
// compute the costs. screen.go decides whether terminal.go shows the picture in place or plain.go
// prints lines. report.go is the result and reporttext.go its text.
//
// truth.go checks everything: it records the server's world at every tick, and after each
// [replication.Client.Frame] it compares every entity of the client with the record of the tick
// that the client shows, code for code. A process of clients gets that record over a TCP connection
// besides the datagrams, see control.go.
package main

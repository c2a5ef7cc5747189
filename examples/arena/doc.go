// Arena is Dogfight: bots in space ships hunt each other in an Arche world that a server owns.
// Clients replicate it over a network that loses, delays, duplicates and reorders packets. Each
// client has a player, also a bot, which joins with a message, sees only the client's world, and
// steers a ship with inputs. The other ships are steered by bots of the server.
//
//	go run ./examples/arena
//
// serves a page, where people play in browsers and break the network; it goes on until Ctrl-C, and
// ends with a table. The client in the page is package client, compiled by this program.
//
//	go run ./examples/arena -http=
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
// socket of its own, and the clock rules. Server and clients can also run in separate processes, on
// different machines:
//
//	go run ./examples/arena -serve 127.0.0.1:9000
//	go run ./examples/arena -connect 127.0.0.1:9000 -clients 8
//	go run ./examples/arena -connect 127.0.0.1:9000 -load 200
//
// A match of a server in this process can be recorded, and played again in the page, with a time slider, or on
// the terminal:
//
//	go run ./examples/arena -record match.rec
//	go run ./examples/arena -replay match.rec
//
// # Files
//
// The game is package game, which knows no sockets: its Host and Player show how a server and a client
// use the library. match.go plays with a server in this process, connect.go with clients of a server
// elsewhere; client.go is a client of either. site.go serves the page in directory page, for which
// build.go compiles the client, page.go adds the match, and break.go is the network in between. record.go
// records a match; replay.go plays it, and replaypage.go serves it to the page, whose client plays it.
//
// The output is a picture, see picture.go: survey.go reads a world, the server's or a client's,
// field.go draws it on the canvas of canvas.go in the style of style.go, and cost.go and figures.go
// compute the costs. screen.go decides whether terminal.go shows the picture in place or plain.go
// prints lines. report.go is the result and reporttext.go its text.
//
// What server and clients simulate alike is in model.go of package game. By it, clients predict their own
// ships and bullets, unless -predict=false; all else comes from the server.
//
// Everything is checked. In one process, truth.go records the server's world at every tick, and after
// each [replication.Client.Frame] every entity of a client is compared with the record of the tick
// that the client shows, code for code, but for what the client predicts; so these clients show the
// newest states. Clients elsewhere interpolate. They compare hashes that the server sends all the time, see
// [replication.Tuning.StateHash], and at the end all of the world, by one sum over it.
package main

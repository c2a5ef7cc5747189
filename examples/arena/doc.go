// Arena is Dogfight: bots in space ships hunt each other in an Arche world that
// a server owns, while clients mirror it over a network that loses, delays,
// duplicates and reorders what they send. Each client has a player, a bot as well,
// that joins with a message, sees what its mirror shows, and steers a ship with
// inputs. The other ships are flown by bots of the server.
//
//	go run ./examples/arena
//
// plays for ten seconds with a server and some clients in one process, shows
// how it goes, and ends with a table: what the replication cost, what plain
// snapshots would have cost, and whether all worlds came out equal. On a terminal
// it draws the fight in place, as the server has it and as a client shows it;
// elsewhere, and if TERM is dumb, it prints a line per second. It honours NO_COLOR,
// and draws in ASCII unless the locale has UTF-8.
//
//	go run ./examples/arena -headless -ticks 1200 -bots 100 -clients 8 -loss 0.1 -latency 60ms -json
//
// does the same as fast as the machine allows, for scripts. With -transport udp
// every client has a socket of its own. Server and clients can also be
// processes of their own, also on different machines:
//
//	go run ./examples/arena -serve 127.0.0.1:9000 -clients 8
//	go run ./examples/arena -connect 127.0.0.1:9000 -clients 8
//
// # What is where
//
// The game is in components.go, game.go, ships.go, scene.go, bots.go, players.go,
// bullets.go, powerups.go and match.go. It knows nothing of a network. host.go adds a
// [replication.Server] to it and mirror.go is a world with a
// [replication.Client]; these two show how the library is used. messages.go is what
// they say beside the state: events.go is the server's part in that, and pilot.go
// the player at a client. line.go, memory.go and udp.go carry datagrams; local.go,
// serve.go with lobby.go, and connect.go with waiting.go are the three ways to run
// it all.
//
// What is shown is a picture, see picture.go: survey.go looks at a world, the
// server's or a mirror alike, field.go draws it on the canvas of canvas.go in the
// style of style.go, and cost.go and figures.go say what it costs. screen.go decides
// whether terminal.go shows that in place or plain.go in lines. report.go is the
// result and reporttext.go what people read of it.
//
// truth.go checks everything: it keeps what the server's world was at every
// tick, and after each [replication.Client.Apply] it compares every mirrored
// entity with what it should be at the tick that the client claims to show, code
// for code. A process of clients gets that record over a TCP connection beside
// the datagrams, see control.go.
package main

// Command trace replays a recorded game through a real server and real clients and prints the cost
// of replicating it: bytes per tick, where the bits go, the time of encoding and decoding, and
// whether every client showed the truth all along.
//
//	go run ./examples/trace -in cubes.trace.csv.zst -rtt 6
//	go run ./examples/trace -in match.csv -loss 0.05 -dup 0.01 -reorder 0.02 -peers 4 -json
//	go run ./examples/trace -in match.rec -loss 0.05
//
// The input is a trace: CSV, plain or zstd-compressed, with the component values of entities at
// each tick ([reader], [header]); or a recording, made by package recording. Component types are
// built at run time and registered like any other ([buildSchema]). The rows are played into a
// server's world ([stage]), a link of package netsim carries the packets to clients with worlds of
// their own ([mirror]), and after every step these worlds are compared, code for code, with a plain
// log of the trace ([oracle]). The output is a [report].
//
// # A trace
//
//	# rate 60
//	tick,entity,Position.X,Position.Y,Rotation.Q[0],Rotation.Q[1],Rotation.Q[2],Rotation.Q[3],Health.HP
//	uint32,uint32,"float32 range=-50:50,step=0.01","float32 range=-50:50,step=0.01","[4]float32 quat,bits=9",,,,uint8
//	0,1,0.5,-3,0,0,0,1,100
//	0,2,7,7,,,,,
//	3,1,0.6,-3,0,0,0,1,95
//	9,2,,,,,,,
//
// A row is the full state of an entity from that tick on. Empty cells are a component that the
// entity does not have; a row with only empty cells ends the entity. The second line contains
// types, each followed by the contents of the repl struct tag.
//
// # A recording
//
// The types of a recording are made from the text of its schema ([schemaOf]), so any game's will do. It is played tick
// by tick ([recorded]); an entity that has changed makes a row. Its number is its network ID, slot * 65536 +
// generation. Resources are components of an entity of their own, with the number 0. What a trace can't have is named
// on stderr, and so is damage: the recording is replayed up to there.
//
// Values are those that clients got: already rounded to the steps of the schema. A recording of a client
// has what that client received, at the ticks that it had received by then. Components that embed a
// struct of an unexported type are refused, since package reflect can't make such types.
//
// # One tick
//
//	acks arrive ──> rows are played ──> Replicate ──> packets arrive ──> Frame ──> compare ──> time steps
//
// The latency of the link is split so that a packet sent at tick t has been acknowledged when tick
// t+rtt is encoded, and not earlier ([split]).
//
// # Advice
//
// With -advice the trace is replayed again and again, each time with half or twice the step of one
// field ([advise], [retags]): the cost of precision is measured, not estimated. A recording that is
// no finer than the step can't show the cost of half the step; such fields are recognised
// ([grain]). Fields that move less than a step a tick are named, with the step that shows them evenly
// ([slowness]).
//
// # Pictures
//
//	go run ./examples/trace -render path.svg -rtt 6 -loss 0.1 -reorder 0.1 -in match.csv
//
// With -render a client draws 144 frames per second, and the picture shows one entity ([film],
// [chart]): its true path, the newest state that the client had, and what package interpolation made of
// it. Each axis has a panel. The last panel shows how far both were from the truth: interpolation at the
// moment that it showed, the newest state at the moment at which a packet that was not held back
// had left. Starved frames are counted over all of the trace. Package interpolation needs a component type
// that is known at compile time, so the position becomes a component of its own if the trace has it
// in one with other fields ([axes]).
//
// # Packets
//
//	go run ./examples/trace -explain match.rec -from 3:12
//	go run ./examples/trace -explain match.rec -from 3:12.016 -ticks 1
//	go run ./examples/trace -explain match.rec -from 3:12 -entity 17.1
//
// With -explain nothing is replayed: a recording of package recording is played, and its packets are listed, a line
// each ([overviewLine]). With -ticks or -entity they are printed completely, as people read them ([explainer]):
// entities, baselines, codes and values, and the bits of each. The bits are summed up by field and by entity
// ([packetSum]). Of an entity that is in no packet, the values are printed.
//
// # What is measured
//
// Means are over the measured ticks: those of the recording from its tick rtt+2 on, when the first
// acknowledgements have arrived. A recording shorter than that is measured completely. Connecting
// and healing are not measured. See [report] for each figure.
package main

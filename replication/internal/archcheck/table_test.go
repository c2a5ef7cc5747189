package archcheck

import (
	"fmt"
	"strings"
)

// A room is a package under replication. Its imports outside tests are exactly these, apart from
// the standard library: packages under replication/internal by their names, bitbuf, quantize and
// delta of this module, and Arche's ecs.
type room struct {
	name    string // below replication/internal, or a path if it is not there
	what    string
	imports string
}

// rooms is the table. Arrows point down: a room imports only rooms below it.
var rooms = []room{
	{face + "/transport/udp", "UDP sockets for servers and clients", "replication/transport/internal/link replication/transport replication/netsim replication"},
	{face + "/transport/quic", "QUIC connections for servers and clients", "replication/transport/internal/link replication/transport replication/netsim replication seam"},
	{face + "/transport/web", "WebSockets and WebTransport for servers, and for clients in browsers", "replication/transport/internal/link replication/transport replication/netsim replication/loop replication seam"},
	{face + "/transport/internal/link", "from the goroutines of sockets to the one of a loop", "replication/transport replication/netsim replication seam"},
	{face + "/transport", "what transports have in common", ""},
	{face + "/inspect", "what replication does, for people and metrics", "replication/interpolation replication/predict replication seam schema"},
	{face + "/recording", "what a server sends or a client receives, in a file", "replication seam session receive archeutil schema wire bitbuf delta ecs"},
	{face + "/netsim", "a bad network, by steps or by the clock", ""},
	{face + "/loop", "ticks and frames by the clock", ""},
	{face + "/rewind", "what a client showed when it gave an input", "replication seam message ackstate arrival archeutil blend schema history wire bitset delta ecs"},
	{face + "/predict", "what a client simulates ahead of the server, and the same at the server", "replication seam archeutil flat receive spring tolerance blend schema wire ecs"},
	{face + "/interpolation", "what a client shows between two states", "replication seam apply archeutil blend clock receive schema wire delta ecs"},
	{face, "the public API: thin methods that forward", "seam apply receive session sender ratecontrol message ackstate interest snapshot archeutil schema history clock counters config exclusive wire delta ecs"},
	{"seam", "what packages beside replication see of its inside", "apply receive message ackstate snapshot schema clock counters config"},
	{"apply", "received states into the client's world", "receive archeutil blend schema field counters exclusive wire bitbuf delta ecs"},
	{"receive", "state packets into held states, by tick", "compact archeutil schema counters config wire bitbuf delta"},
	{"session", "handshake, reconnect, disconnect", "counters config exclusive wire delta"},
	{"sender", "what a peer is sent in a tick; its budget; packets", "ratecontrol encode join compact ackstate interest baseline choice snapshot counters config wire bitset bitbuf delta ecs"},
	{"join", "how the work of joining is spread over ticks", "ackstate snapshot config bitset delta"},
	{"ratecontrol", "the rate that the path to a client carries", "delta"},
	{"message", "messages and inputs, both ends", "ackstate snapshot schema clock counters wire bitbuf delta ecs"},
	{"encode", "what is encoded once per tick and shared", "compact ackstate baseline snapshot schema wire bitset bitbuf delta"},
	{"compact", "entries and models of the coding Compact", "ackstate snapshot schema history wire delta"},
	{"ackstate", "what one client holds: packets, acks, what is dirty", "arrival interest baseline snapshot clock counters wire bitset delta ecs"},
	{"arrival", "which states arrived at a client, by tick, for rewind", "bitset delta"},
	{"interest", "what one peer may see", "snapshot archeutil schema wire bitset delta ecs"},
	{"baseline", "which acknowledged ticks an update is taken against", "snapshot delta"},
	{"choice", "the most urgent of some slots", "snapshot bitset"},
	{"snapshot", "the world as slots, versions and changes, once per tick", "archeutil schema history config wire bitset delta ecs"},
	{"archeutil", "what Arche lacks", "schema wire bitset ecs"},
	{"tolerance", "rows of codes that were predicted, against the server's", "schema field"},
	{"spring", "corrections that fade", ""},
	{"flat", "values of any type as words, to compare them", ""},
	{"blend", "component values between two states", "schema field delta"},
	{"schema", "registered types: columns of fields, rows, the schema text", "field wire bitset delta ecs"},
	{"field", "one field: its tag, its codec, loops over values in memory", "history wire quantize delta ecs"},
	{"history", "versions of the rows of a component, by slot and tick", "delta"},
	{"clock", "round trips, the server's tick, the input delay", "delta"},
	{"counters", "counters that several packages write", ""},
	{"config", "options of a server", "delta ecs"},
	{"exclusive", "finds two goroutines in one server or client; the hooks of a server", ""},
	{"wire", "every packet to the bit, writer beside parser", "bitbuf delta"},
	{"bitset", "sets of slots, 64 to a word", ""},
}

const face = "replication"

// forTests are packages that only tests import, and commands about tests. They may import anything.
var forTests = []string{"archcheck", "mutate", "replicationtest", "soak", "timetest"}

// outside are the imports of the table that are not rooms, in the order of the printed table.
var outside = []string{"quantize", "bitbuf", "delta", "ecs"}

func (r *room) list() []string { return strings.Fields(r.imports) }

// path returns the directory of the room, from the root of the module.
func (r *room) path() string {
	if strings.HasPrefix(r.name, face) {
		return r.name
	}
	return face + "/internal/" + r.name
}

// printed returns the table as CONTRIBUTING.md shows it.
func printed() string {
	var b strings.Builder
	for _, r := range rooms {
		fmt.Fprintf(&b, "%-11s %s\n", r.name, r.what)
		imports := r.imports
		if imports == "" {
			imports = "nothing"
		}
		for line := "-> " + imports; line != ""; {
			head := line
			if len(line) > 105 {
				head = line[:strings.LastIndexByte(line[:105], ' ')]
			}
			line = strings.TrimPrefix(line[len(head):], " ")
			fmt.Fprintf(&b, "%11s %s\n", "", head)
			if line != "" {
				line = "   " + line
			}
		}
	}
	return b.String()
}

package main

import (
	"errors"
	"flag"
	"fmt"
	"io"
	"time"

	"github.com/arche-replicate/arche-replicate/replication/netsim"
)

// config holds the flags.
type config struct {
	headless bool
	json     bool
	ticks    int // of a server; 0: until interrupted
	duration time.Duration

	seed     uint64
	bots     int
	clients  int // with serve, to wait for
	load     int
	tickRate int // simulation steps per second
	sendRate int // state packets per second

	loss, dup, reorder float64
	latency, jitter    time.Duration

	predict        bool // own ships and bullets
	transport      string
	http           string // where the page is served; empty: none
	httpGiven      bool
	open           bool
	serve, connect string
	record, replay string // files
	wait           time.Duration

	pageAddress string // of the page, once it is served

	onListen func(address string) // for tests: called when the server is listening
}

// Limits of the flags. Ship.Number has room for this many bots and clients.
const (
	maxBots     = 1024
	maxClients  = 256
	maxTickRate = 240
	maxSendStep = 60 // ticks, of Peer.SetSendInterval
	maxDelay    = 10 * time.Second
)

const usage = `Arena: bots fight in a world that a server replicates to clients over a bad network.

Without flags it serves a page, where you play in a browser and break the network, and goes on until
Ctrl-C. With -http= it plays for ten seconds in one process. A terminal shows the fight meanwhile;
elsewhere it prints a line per second.

For two processes, start a server, which goes on until Ctrl-C, and clients, which go on until the
server ends:

  go run ./examples/arena -serve 127.0.0.1:9000
  go run ./examples/arena -connect 127.0.0.1:9000 -clients 8

-record FILE records the match of a server in this process, in a page, a terminal or without any.
-replay FILE shows it again: in a page with a time slider, on the terminal with -http=, or, with
-headless or -json, as what is in it.

It exits with 0 if all worlds became equal, or too little time was left to compare all of them, with
1 if one did not or if the other side of -serve or -connect does not come, and with 2 if the flags
are invalid. For the comparison at the end, links lose and delay nothing.

`

// parseFlags reads the command line. Its error is one sentence for the user; it is flag.ErrHelp if
// the user asked for help, which has then been written to out.
func parseFlags(args []string, out io.Writer) (config, error) {
	var c config
	fs := flag.NewFlagSet("arena", flag.ContinueOnError)
	fs.SetOutput(io.Discard)
	fs.BoolVar(&c.headless, "headless", false, "print only the result; in memory, run as fast as possible")
	fs.BoolVar(&c.json, "json", false, "print the result as one JSON object")
	fs.IntVar(&c.ticks, "ticks", 0, "`number` of simulation steps to play (default: as many as -duration takes)")
	fs.DurationVar(&c.duration, "duration", 10*time.Second,
		"simulated time to play; without it, -serve and a page go on until Ctrl-C,\n"+
			"-connect until the server ends")
	fs.Uint64Var(&c.seed, "seed", 1, "same seed, same fight, same luck on the network")
	fs.IntVar(&c.bots, "bots", 100, "`number` of ships of the server's bots; every client adds one")
	fs.IntVar(&c.clients, "clients", 4, "`number` of clients, each with a world of its own;\n"+
		"with -serve, to wait for before the fight (default: none)")
	fs.IntVar(&c.load, "load", 0, "with -connect: be this `number` of clients, and print percentiles")
	fs.IntVar(&c.tickRate, "tick-rate", 60, "simulation steps per second")
	fs.IntVar(&c.sendRate, "send-rate", 20, "packets per second; it must divide -tick-rate")
	fs.Float64Var(&c.loss, "loss", 0.05, "`share` of the packets that vanish, each way")
	fs.DurationVar(&c.latency, "latency", 50*time.Millisecond, "one way; a round trip takes twice that")
	fs.DurationVar(&c.jitter, "jitter", 10*time.Millisecond, "by how much the latency varies, up and down")
	fs.Float64Var(&c.dup, "dup", 0.01, "`share` of the packets that arrive twice")
	fs.Float64Var(&c.reorder, "reorder", 0.01, "`share` of the packets that later ones overtake")
	fs.BoolVar(&c.predict, "predict", true, "clients show their own ships and bullets ahead of the server")
	fs.StringVar(&c.transport, "transport", "memory", "memory, or udp for a loopback socket per client, by the clock")
	fs.StringVar(&c.http, "http", "127.0.0.1:8080",
		"`address` of the page, or of the next port if nobody asks for one;\n"+
			"empty: none, as with -headless, -json, -serve, -connect, -load, -clients\nor -transport")
	fs.BoolVar(&c.open, "open", true, "open the page in a browser")
	fs.StringVar(&c.serve, "serve", "", "be the server for clients that -connect to this UDP `address`;\n"+
		"they simulate the bad network")
	fs.StringVar(&c.connect, "connect", "", "be the clients of the server at this `address`")
	fs.StringVar(&c.record, "record", "", "record the match in this `file`, which is replaced")
	fs.StringVar(&c.replay, "replay", "", "play what is recorded in this `file`")
	fs.DurationVar(&c.wait, "wait", time.Minute, "how long to wait for the other side")

	if err := fs.Parse(args); err != nil {
		if errors.Is(err, flag.ErrHelp) {
			_, _ = io.WriteString(out, usage)
			fs.SetOutput(out)
			fs.PrintDefaults()
		}
		return c, err
	}
	if fs.NArg() > 0 {
		return c, fmt.Errorf("there is nothing to do with the argument %q: use flags only", fs.Arg(0))
	}
	given := map[string]bool{}
	fs.Visit(func(f *flag.Flag) { given[f.Name] = true })
	if err := c.validate(given); err != nil {
		return c, err
	}
	c.complete(given)
	return c, nil
}

// elsewhere reports whether the server's clients are in other processes.
func (c *config) elsewhere() bool { return c.serve != "" || c.http != "" }

// complete sets what depends on several flags.
func (c *config) complete(given map[string]bool) {
	c.httpGiven = given["http"]
	c.headless = c.headless || c.json && c.replay != "" // there is nothing to see meanwhile
	for _, without := range withoutPage {
		if given[without] && !c.httpGiven {
			c.http = ""
		}
	}
	seconds := func(ticks int) time.Duration { return time.Duration(ticks) * time.Second / time.Duration(c.tickRate) }
	switch {
	case given["ticks"]:
		c.duration = seconds(c.ticks)
	case given["duration"], !c.elsewhere() && c.connect == "":
		c.ticks = max(1, int(c.duration.Seconds()*float64(c.tickRate)))
	default:
		c.duration = 0
	}
	if c.elsewhere() && !given["clients"] {
		c.clients = 0
	}
	if c.load > 0 {
		c.clients = c.load
	}
}

// sendStep returns the number of simulation steps between two packets of state.
func (c *config) sendStep() int { return c.tickRate / c.sendRate }

// link describes the network in words.
func (c *config) link() string {
	if c.serve != "" {
		return "as it is; clients simulate a bad one"
	}
	late := c.latency.String()
	if c.jitter > 0 {
		late = fmt.Sprintf("%v to %v", max(c.latency-c.jitter, 0), c.latency+c.jitter)
	}
	return fmt.Sprintf("%.4g %% lost, %s late, %.4g %% doubled, %.4g %% overtaken, each way", 100*c.loss, late,
		100*c.dup, 100*c.reorder)
}

// network returns the bad network of one direction.
func (c *config) network() netsim.Profile {
	p := netsim.Profile{Latency: c.latency, Jitter: c.jitter, Loss: c.loss, Duplicate: c.dup, Reorder: c.reorder}
	if p.Reorder > 0 {
		p.ReorderBy = 2 * time.Second / time.Duration(c.sendRate) // long enough to be overtaken
	}
	return p
}

// quietTicks returns how long to wait at most for the worlds to become equal once nothing changes
// and nothing is lost any more: until everything in flight has arrived, and half a minute more.
func (c *config) quietTicks() int {
	p := c.network()
	return int((30*time.Second + 2*(p.Latency+p.Jitter) + p.ReorderBy).Seconds() * float64(c.tickRate))
}

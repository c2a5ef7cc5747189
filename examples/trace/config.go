package main

import (
	"bytes"
	"errors"
	"flag"
	"fmt"
	"io"
	"math"
	"slices"
	"strings"
	"time"

	"github.com/arche-replicate/arche-replicate/replication"
)

// config holds the flags.
type config struct {
	in      string
	coding  string
	rtt     int // ticks
	loss    float64
	dup     float64
	reorder float64
	seed    uint64
	peers   int
	mtu     int // bytes
	json    bool
	ticks   int // 0: all
	advice  bool
	codes   bool
	tune    bool
	tables  string // for Schema.Tune

	render  string // file; empty: no picture
	explain string // file; empty: no packets are printed
	scene

	given  []string // which flags, such as -in
	retags retags   // tags that replace the trace's, for advice
	notes  *notes
}

// name returns the trace's name for texts.
func (c *config) name() string {
	if c.in == "-" {
		return "standard input"
	}
	return c.in
}

// over reports whether -ticks ends the trace before the tick that is elapsed ticks after its first.
func (c *config) over(elapsed uint64) bool { return c.ticks > 0 && elapsed >= uint64(c.ticks) }

// codings are the values of -coding.
var codings = []string{replication.Packed.String(), replication.Compact.String()}

// peerCoding returns the coding selected by -coding.
func (c *config) peerCoding() replication.Coding {
	return replication.Coding(slices.Index(codings, c.coding))
}

// Limits of the flags. Those of the MTU are the library's.
const (
	maxRTT   = 1000
	maxPeers = 256
	maxTicks = math.MaxInt32
	minMTU   = 64
	maxMTU   = 65507
)

// errHelp asks for the help text instead of a run.
var errHelp = flag.ErrHelp

func (c *config) flags() *flag.FlagSet {
	set := flag.NewFlagSet("trace", flag.ContinueOnError)
	set.SetOutput(io.Discard) // errors are printed once, by the caller
	set.StringVar(&c.in, "in", "",
		"the trace, a `file` of CSV, plain or zstd-compressed, or a recording; - is standard input; "+
			"-in may be left out at the end")
	set.StringVar(&c.coding, "coding", "packed", "`name` of the coding: "+strings.Join(codings, ", "))
	set.IntVar(&c.rtt, "rtt", 6, "round trip in `ticks`: a packet of tick t is acknowledged at t+rtt")
	set.Float64Var(&c.loss, "loss", 0, "`share` of packets lost in either direction, 0 to 1")
	set.Float64Var(&c.dup, "dup", 0, "`share` of packets that arrive twice, 0 to 1")
	set.Float64Var(&c.reorder, "reorder", 0, fmt.Sprintf("`share` of packets held back by 1 to %d ticks, 0 to 1",
		heldBack))
	set.Uint64Var(&c.seed, "seed", 1, "seed of the link's random numbers: the same `number`, the same run")
	set.IntVar(&c.peers, "peers", 1, "`number` of clients")
	set.IntVar(&c.mtu, "mtu", 1200, "size of the largest packet in `bytes`")
	set.IntVar(&c.ticks, "ticks", 0,
		"replay the first `ticks` of the trace only, or -explain as many, completely; 0 is all")
	set.BoolVar(&c.advice, "advice", false,
		"measure what half and twice the step of each field would cost, by replaying the trace with it")
	set.BoolVar(&c.tune, "tune", false,
		"make tables for the coding Packed from the first half of the trace, and measure what they save")
	set.StringVar(&c.tables, "tables", "", "replay with these `tables`, as -tune prints them")
	set.StringVar(&c.render, "render", "",
		"draw an SVG `file`: the path of an entity as it was, and as a client shows it")
	c.scene.flags(set)
	set.StringVar(&c.explain, "explain", "",
		"print the packets of a recording, a `file` of package recording: what was in them, and what it took")
	set.BoolVar(&c.codes, "codes", false, "print the quantised codes of each row as CSV, instead of a replay")
	set.BoolVar(&c.json, "json", false, "print one JSON object instead of a table")
	return set
}

// parseFlags reads the command line. The error is one sentence, or errHelp.
func parseFlags(args []string) (config, error) {
	var c config
	set := c.flags()
	if err := set.Parse(args); err != nil {
		if errors.Is(err, flag.ErrHelp) {
			return c, errHelp
		}
		return c, fmt.Errorf("%w; -h explains the flags", err)
	}
	set.Visit(func(f *flag.Flag) { c.given = append(c.given, "-"+f.Name) })
	switch {
	case set.NArg() == 1 && c.in == "" && c.explain == "":
		c.in = set.Arg(0) // -in may be left out if no flag follows
	case set.NArg() > 0:
		return c, fmt.Errorf("%q is too much; there is one trace, named by -in or after all flags",
			set.Arg(set.NArg()-1))
	}
	return c, c.check()
}

// check returns an error for the first flag that is out of its range.
func (c *config) check() error {
	if c.explain != "" {
		return c.checkExplain()
	}
	if c.in == "" {
		return errors.New("no trace: name one with -in FILE; -h shows an example")
	}
	known := false
	for _, name := range codings {
		known = known || name == c.coding
	}
	if !known {
		return fmt.Errorf("-coding %q is unknown; there is %s", c.coding, strings.Join(codings, ", "))
	}
	for _, f := range []struct {
		name     string
		value    int
		min, max int
		unit     string
	}{
		{"rtt", c.rtt, 1, maxRTT, "ticks"},
		{"peers", c.peers, 1, maxPeers, "clients"},
		{"mtu", c.mtu, minMTU, maxMTU, "bytes"},
		{"ticks", c.ticks, 0, maxTicks, "ticks"},
	} {
		if f.value < f.min || f.value > f.max {
			return fmt.Errorf("-%s is %d, but must be %d to %d %s", f.name, f.value, f.min, f.max, f.unit)
		}
	}
	for _, f := range []struct {
		name  string
		value float64
	}{
		{"loss", c.loss},
		{"dup", c.dup},
		{"reorder", c.reorder},
	} {
		if math.IsNaN(f.value) || f.value < 0 || f.value > 1 {
			return fmt.Errorf("-%s is %v, but must be a share from 0 to 1; 0.05 is 5 %%", f.name, f.value)
		}
	}
	if err := c.checkTune(); err != nil {
		return err
	}
	return c.checkScene()
}

// checkTune returns an error if -tune does not suit other flags.
func (c *config) checkTune() error {
	switch {
	case !c.tune:
		return nil
	case c.coding != replication.Packed.String():
		return errors.New("-tune makes tables for the coding packed; compact learns all the time, and needs none")
	case c.tables != "":
		return errors.New("-tune makes tables: leave out -tables")
	case c.advice:
		return errors.New("-tune and -advice both replay the trace again and again: choose one")
	}
	return nil
}

// Limits of the flags of -render.
const (
	minFPS, maxFPS   = 1, 1000
	minSpan, maxSpan = 100 * time.Millisecond, time.Minute
)

// checkScene returns an error for the first flag of -render that is out of its range.
func (c *config) checkScene() error {
	switch {
	case c.render == "":
		return nil
	case c.advice, c.tune, c.json:
		return errors.New("-render draws a picture: leave out -advice, -tune and -json")
	case c.peers != 1:
		return fmt.Errorf("-render has one client, not %d", c.peers)
	case !(c.fps >= minFPS && c.fps <= maxFPS):
		return fmt.Errorf("-fps is %v, but must be %d to %d frames per second", c.fps, minFPS, maxFPS)
	case c.span < minSpan || c.span > maxSpan:
		return fmt.Errorf("-span is %v, but must be %v to %v", c.span, minSpan, maxSpan)
	case c.from < 0:
		return fmt.Errorf("-from is %v, but must not be negative", c.from)
	}
	return nil
}

const help = `trace replays a recorded game through a real server and real clients over a
simulated network, checks that the clients show the truth, and prints what
replicating the game costs.

    go run ./examples/trace -in match.csv -rtt 6 -loss 0.05 -peers 2

A trace is a CSV file, plain or zstd-compressed. This one has two entities: 1
moves and loses health, 2 has a position only, moves once and is gone at tick 9.

    # rate 60
    tick,entity,Position.X,Position.Y,Health.HP
    uint32,uint32,"float32 range=-50:50,step=0.01","float32 range=-50:50,step=0.01",uint8
    0,1,0.5,-3,100
    0,2,7,7,
    3,1,0.6,-3,95
    4,2,7.1,7,
    9,2,,,

Line 1 is the rate in ticks per second. Line 2 names the columns, Component.Field
each, or Component.Field[i] for the elements of an array. Line 3 gives the Go
types, each followed by the contents of the repl struct tag. A row is the full
state of an entity from its tick on.

A recording of your game, made by package replication/recording, is a trace, too,
whatever its schema; best is one of a server, since a client's has what that client
received. What is not replayed, such as messages, is named on stderr. An entity's
number is slot * 65536 + generation of its NetID; -entity takes 17.1 as well.

    go run ./examples/trace -in match.rec -rtt 6 -loss 0.05

With -advice the trace is replayed two times more for each field that has a step,
precision or bits: with half and with twice the step, everything else unchanged.
So many replays take time; -ticks 500 plays the beginning only.

    go run ./examples/trace -in match.csv -advice

With -tune the trace is replayed some fifty times to find tables for the coding
Packed that suit the game, and the line of code that sets them is printed with
what it saves. They are made from the first half and measured on the second too.

    go run ./examples/trace -in match.csv -tune

With -render the trace is replayed for a client that draws 144 frames per second
with package interpolation, and FILE.svg shows what came of it: where an entity truly
was, where the newest state had it, and where interpolation showed it, and how far
both were from the truth. Without -entity it is the one that moves most.

    go run ./examples/trace -render path.svg -loss 0.1 -reorder 0.1 match.csv

With -explain the packets of a recording are listed, a line each, and where the
bits went is summed up. With -ticks or -entity all of it is printed as people read
it: which entities are in each packet, against which baselines, which codes and
values their fields have, and how many bits each of that took. That answers why a
packet has 400 bytes, and what it contained at 3:12.

    go run ./examples/trace -explain match.rec -from 3:12
    go run ./examples/trace -explain match.rec -from 3:12.016 -ticks 1
    go run ./examples/trace -explain match.rec -from 3:12 -entity 17.1

Exit status: 0 if all is well, 1 if a client ever showed a wrong state or the
worlds were not equal at the end, 2 if a flag or the trace is not valid.

Flags:
`

// printHelp explains the program.
func printHelp(w io.Writer) error {
	text := bytes.NewBufferString(help)
	set := new(config).flags()
	set.SetOutput(text)
	set.PrintDefaults()
	_, err := text.WriteTo(w)
	return err
}

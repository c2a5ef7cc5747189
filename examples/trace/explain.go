package main

import (
	"bufio"
	"errors"
	"fmt"
	"io"
	"os"
	"slices"
	"strings"
	"time"

	"github.com/mlange-42/arche/ecs"

	"github.com/arche-replicate/arche-replicate/replication"
	"github.com/arche-replicate/arche-replicate/replication/recording"
)

// checkExplain returns an error if a flag does not suit -explain.
func (c *config) checkExplain() error {
	others := slices.DeleteFunc(slices.Clone(c.given), func(name string) bool {
		return slices.Contains([]string{"-explain", "-from", "-span", "-ticks", "-entity"}, name)
	})
	switch {
	case len(others) > 0:
		return fmt.Errorf("-explain only prints the packets of a recording: leave out %s", strings.Join(others, ", "))
	case c.ticks < 0 || c.ticks > maxTicks:
		return fmt.Errorf("-ticks is %d, but must be 0 to %d ticks", c.ticks, maxTicks)
	case c.ticks > 0 && c.spanChosen:
		return errors.New("-ticks and -span both end what -explain prints: choose one")
	case c.from < 0:
		return fmt.Errorf("-from is %v, but must not be negative", c.from)
	case c.spanChosen && c.span <= 0:
		return fmt.Errorf("-span is %v, but must be more than 0", c.span)
	}
	return nil
}

// explainFile prints packets of the recording of -explain, and returns the exit code.
func explainFile(cfg config, stdout, stderr io.Writer) int {
	file, err := os.Open(cfg.explain)
	if err != nil {
		return complain(stderr, err)
	}
	defer func() { _ = file.Close() }() // it was only read
	state, err := file.Stat()
	if err != nil {
		return complain(stderr, err)
	}
	info, err := recording.ReadInfo(file, state.Size())
	if err != nil {
		return complain(stderr, err)
	}
	schema, err := schemaOf(info.Schema)
	if err != nil {
		return complain(stderr, err)
	}
	x := &explainer{cfg: cfg, server: info.TickRate > 0, sum: newPacketSum(info.Schema)}
	x.world.world, x.world.types = ecs.NewWorld(), schema.types
	if x.player, err = recording.NewPlayer(&x.world.world, schema.schema, file, state.Size()); err != nil {
		return complain(stderr, err)
	}
	x.world.register()
	if x.player.Duration() < cfg.from {
		return complain(stderr, fmt.Errorf("-from is %s, but the recording ends at %s", clockText(cfg.from),
			clockText(x.player.Duration())))
	}
	x.w = bufio.NewWriter(stdout)
	if err := x.run(&info); err != nil {
		return complain(stderr, errors.Join(err, x.w.Flush()))
	}
	if err := x.w.Flush(); err != nil {
		return complain(stderr, err)
	}
	if err := x.player.Damage(); err != nil {
		return complain(stderr, err)
	}
	return exitOK
}

// An explainer prints packets.
type explainer struct {
	w        *bufio.Writer
	cfg      config
	player   *recording.Player
	world    recordedWorld
	from, to time.Duration
	over     bool          // the rest is not printed
	server   bool          // a server recorded
	restart  time.Duration // where the recording starts anew, or 0
	packets  int           // of the time that is printed
	last     time.Duration // of these
	sum      packetSum
}

// complete reports whether all of each packet is printed, not only a line.
func (x *explainer) complete() bool { return x.cfg.ticks > 0 || x.cfg.entityChosen }

// run prints the packets that the flags choose.
func (x *explainer) run(info *recording.Info) error {
	x.from, x.to = x.cfg.from, x.cfg.from+explainSpan
	switch {
	case x.cfg.spanChosen:
		x.to = x.from + x.cfg.span
	case x.cfg.ticks > 0:
		x.to = x.player.Duration() + 1
	}
	x.preface(info)
	if x.from > 0 {
		// Packets of that moment are printed, so the player has to be before it. No tick is shorter than a millisecond.
		if err := x.player.Seek(max(x.from-time.Millisecond/2, 0)); err != nil {
			return err
		}
	}
	x.player.OnPacket(x.packet)
	for steps := 0; !x.player.Ended() && !x.over && (x.cfg.ticks == 0 || steps < x.cfg.ticks); {
		// The error is that of a connection that ended, which the packets show.
		_ = x.player.Step()
		if at := x.player.Position(); at >= x.from {
			steps++
			if at >= x.to {
				x.end()
			}
		}
		if err := x.w.Flush(); err != nil {
			return err
		}
	}
	x.end()
	if x.sum.packets > 0 {
		of := ""
		if x.cfg.entityChosen {
			of = fmt.Sprintf(" of entity %v", x.cfg.entity)
		}
		x.sum.print(x.w, of)
	}
	return nil
}

// end ends what is printed of packets. The world is that of the end.
func (x *explainer) end() {
	if !x.over && x.sum.packets == 0 {
		x.nothing()
	}
	x.over = true
}

// nothing prints why there is no packet.
func (x *explainer) nothing() {
	from, to := clockText(x.from), clockText(min(x.to, x.player.Duration()))
	if x.packets == 0 {
		fmt.Fprintf(x.w, "\nno packets from %s to %s\n", from, to)
		return
	}
	name, found := x.cfg.entity, false
	to = clockText(x.last)
	show := func(what string, e ecs.Entity) {
		fmt.Fprintf(x.w, "\nentity %v is in none of %d packets from %s to %s; %s:\n", name, x.packets, from, to, what)
		for _, line := range x.world.lines(x.player.Client(), e) {
			fmt.Fprintf(x.w, "  %s\n", line)
		}
		found = true
	}
	for id, e := range x.player.Client().Entities() {
		if !name.is(id) {
			continue
		}
		what := "its values"
		if tick, ok := x.player.Client().StateTick(e); ok {
			what = fmt.Sprintf("unchanged at least since tick %d, its values are", tick)
		}
		show(what, e)
	}
	resources := slices.ContainsFunc(x.world.types, func(t textType) bool { return t.word == "resource" })
	if !found && !name.exact && name.number == resourceEntity && resources {
		show("the values of resources", ecs.Entity{})
	}
	if !found {
		fmt.Fprintf(x.w, "\nthere is no entity %v from %s to %s\n", name, from, to)
	}
}

// preface prints what is known of the recording, and which part of it follows.
func (x *explainer) preface(info *recording.Info) {
	rate := fmt.Sprintf("of a server with %d ticks per second", info.TickRate)
	if info.TickRate == 0 {
		rate = "of what a client received"
	}
	fmt.Fprintf(x.w, "%s: a recording %s, %s long\n", x.cfg.explain, rate, clockText(x.player.Duration()))
	if x.server {
		fmt.Fprintln(x.w, "the packets are the recorder's; what a client was sent is in a recording of the client")
	}
	for _, key := range sortedKeys(info.Meta) {
		fmt.Fprintf(x.w, "%s: %q\n", key, info.Meta[key])
	}
	for _, m := range x.player.Marks() {
		if m.At >= x.from && m.At < x.to {
			fmt.Fprintf(x.w, "mark at %s: %q\n", clockText(m.At), m.Text)
		}
	}
	what, others := "the packets", "-from, -span, -ticks and -entity choose others"
	switch {
	case x.cfg.entityChosen:
		what = fmt.Sprintf("entity %v", x.cfg.entity)
	case !x.complete():
		what = "a line for each packet"
		others = fmt.Sprintf("-from %s -ticks 1 prints all of a packet, -entity 1 all of an entity", clockText(x.from))
	}
	until := "to " + clockText(min(x.to, x.player.Duration()))
	if x.cfg.ticks > 0 {
		until = fmt.Sprintf("on, for %d ticks or frames", x.cfg.ticks)
	}
	fmt.Fprintf(x.w, "printed: %s from %s %s; %s\n", what, clockText(x.from), until, others)
	if !x.complete() {
		fmt.Fprint(x.w, "\n", overviewHeading)
	}
}

// packet prints a packet.
func (x *explainer) packet(p *recording.Packet) {
	if p.At < x.from || x.over {
		return
	}
	if p.At >= x.to {
		x.end()
		return
	}
	x.packets, x.last = x.packets+1, p.At
	begins := p.Kind == "welcome" && x.server && p.At > 0
	if begins {
		x.restart = p.At
	}
	restart := x.restart > 0 && p.At == x.restart
	if !x.complete() {
		x.sum.add(p, x.cfg, restart)
		fmt.Fprint(x.w, overviewLine(p, begins))
		return
	}
	lines := packetLines(p, x.cfg)
	if len(lines) == 0 {
		return
	}
	x.sum.add(p, x.cfg, restart)
	fmt.Fprintf(x.w, "\n%s\n", heading(p))
	if begins {
		fmt.Fprintln(x.w, "  the recording starts anew, so that players can seek: "+
			"what follows repeats this tick, and no client got it")
	}
	widths := [4]int{12, 6, 8, 6}
	for _, l := range lines {
		for i, cell := range []string{l.name, l.bits, l.code, l.change} {
			widths[i] = max(widths[i], min(textWidth(cell), 40))
		}
	}
	for _, l := range lines {
		fmt.Fprint(x.w, l.text(&widths))
	}
}

// heading returns what precedes the lines of a packet.
func heading(p *recording.Packet) string {
	text := clockText(p.At)
	if p.Kind == "state" || p.Kind == "messages" {
		text += fmt.Sprintf("  tick %d", p.Tick)
	}
	switch {
	case p.Kind == "state" && p.Compact:
		text += fmt.Sprintf("  state packet %d in Compact", p.Sequence)
	case p.Kind == "state":
		text += fmt.Sprintf("  state packet %d in Packed", p.Sequence)
	default:
		text += "  " + p.Kind
	}
	text += fmt.Sprintf("  %d bytes = %d bits", p.Bytes, 8*p.Bytes)
	if p.Err != nil {
		text += "\n  NOT TAKEN: " + p.Err.Error()
	}
	return text
}

// clockText returns a time as people read it, 3:12.016. It is rounded down, so that -from finds the packet again.
func clockText(d time.Duration) string {
	return fmt.Sprintf("%d:%02d.%03d", d/time.Minute, d/time.Second%60, d/time.Millisecond%1000)
}

// chosen reports whether a part is of what -entity chooses.
func (c *config) chosen(part *recording.PacketPart) bool {
	switch {
	case !c.entityChosen:
		return true
	case part.Slot < 0:
		return false
	case c.entity.is(part.Entity) && part.Entity != replication.NetID{}:
		return true
	}
	// What has no generation is a resource, or the packet does not name it.
	unnamed := part.Entity.Generation == 0 && (part.Entity != replication.NetID{} || part.What == "end")
	return uint64(part.Slot) == c.entity.number && (!c.entity.exact || unnamed)
}

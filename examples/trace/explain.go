package main

import (
	"bufio"
	"errors"
	"fmt"
	"io"
	"os"
	"time"

	"github.com/mlange-42/arche/ecs"

	"github.com/arche-replicate/arche-replicate/replication"
	"github.com/arche-replicate/arche-replicate/replication/recording"
)

// checkExplain returns an error if a flag does not suit -explain.
func (c *config) checkExplain() error {
	switch {
	case c.in != "":
		return errors.New("-explain prints a recording: leave out -in")
	case c.advice, c.tune, c.json, c.codes, c.render != "":
		return errors.New("-explain prints packets: leave out -advice, -tune, -render, -codes and -json")
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
	world := ecs.NewWorld()
	player, err := recording.NewPlayer(&world, schema.schema, file, state.Size())
	if err != nil {
		return complain(stderr, err)
	}
	w := bufio.NewWriter(stdout)
	if err := explainTo(w, cfg, &info, player); err != nil {
		return complain(stderr, errors.Join(err, w.Flush()))
	}
	if err := w.Flush(); err != nil {
		return complain(stderr, err)
	}
	if err := player.Damage(); err != nil {
		return complain(stderr, err)
	}
	return exitOK
}

// spanOfPackets is the time of which packets are printed if no flag sets it.
const spanOfPackets = time.Second

// explainTo prints the packets that the flags choose.
func explainTo(w *bufio.Writer, cfg config, info *recording.Info, player *recording.Player) error {
	x := explainer{w: w, cfg: cfg, from: cfg.from, to: cfg.from + spanOfPackets, server: info.TickRate > 0}
	x.sum = newPacketSum(info.Schema)
	switch {
	case cfg.spanChosen:
		x.to = cfg.from + cfg.span
	case cfg.ticks > 0:
		x.to = player.Duration() + 1
	}
	x.preface(info, player)
	if x.from > 0 {
		// Packets of that moment are printed, so the player has to be before it. No tick is shorter than a millisecond.
		if err := player.Seek(max(x.from-time.Millisecond/2, 0)); err != nil {
			return err
		}
	}
	player.OnPacket(x.packet)
	for steps := 0; !player.Ended() && !x.over && (cfg.ticks == 0 || steps < cfg.ticks); {
		// The error is that of a connection that ended, which the packets show.
		_ = player.Step()
		if at := player.Position(); at >= x.from {
			steps++
			x.over = x.over || at >= x.to
		}
		if err := w.Flush(); err != nil {
			return err
		}
	}
	x.sum.print(w)
	return nil
}

// An explainer prints packets.
type explainer struct {
	w        *bufio.Writer
	cfg      config
	from, to time.Duration
	over     bool          // the rest is not printed
	server   bool          // a server recorded
	restart  time.Duration // where the recording starts anew, or 0
	sum      packetSum
}

// preface prints what is known of the recording, and which part of it follows.
func (x *explainer) preface(info *recording.Info, player *recording.Player) {
	rate := fmt.Sprintf("of a server with %d ticks per second", info.TickRate)
	if info.TickRate == 0 {
		rate = "of what a client received"
	}
	fmt.Fprintf(x.w, "%s: a recording %s, %s long\n", x.cfg.explain, rate, clockText(player.Duration()))
	if x.server {
		fmt.Fprintln(x.w, "the packets are the recorder's; what a client was sent is in a recording of the client")
	}
	for _, key := range sortedKeys(info.Meta) {
		fmt.Fprintf(x.w, "%s: %q\n", key, info.Meta[key])
	}
	for _, m := range player.Marks() {
		if m.At >= x.from && m.At < x.to {
			fmt.Fprintf(x.w, "mark at %s: %q\n", clockText(m.At), m.Text)
		}
	}
	what := "the packets"
	if x.cfg.entityChosen {
		what = fmt.Sprintf("entity %d", x.cfg.entity)
	}
	until := "to " + clockText(min(x.to, player.Duration()))
	if x.cfg.ticks > 0 {
		until = fmt.Sprintf("on, for %d ticks or frames", x.cfg.ticks)
	}
	fmt.Fprintf(x.w, "printed: %s from %s %s; -from, -span, -ticks and -entity choose others\n", what,
		clockText(x.from), until)
}

// packet prints a packet.
func (x *explainer) packet(p *recording.Packet) {
	if p.At < x.from || x.over {
		return
	}
	if p.At >= x.to {
		x.over = true
		return
	}
	begins := p.Kind == "welcome" && x.server && p.At > 0
	if begins {
		x.restart = p.At
	}
	lines := packetLines(p, x.cfg)
	if len(lines) == 0 {
		return
	}
	x.sum.add(p, x.cfg, x.restart > 0 && p.At == x.restart)
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
	if !c.entityChosen {
		return true
	}
	return part.Slot >= 0 && (uint64(part.Slot) == c.entity ||
		part.Entity != replication.NetID{} && uint64(part.Entity.Slot) == c.entity)
}

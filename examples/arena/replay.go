package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/mlange-42/arche/ecs"

	"github.com/arche-replicate/arche-replicate/examples/arena/game"
	"github.com/arche-replicate/arche-replicate/replication/interpolation"
	"github.com/arche-replicate/arche-replicate/replication/loop"
	"github.com/arche-replicate/arche-replicate/replication/recording"
)

// replay is a recording that is played into a world.
type replay struct {
	path   string
	name   string // for people
	file   *os.File
	size   int64
	world  ecs.World
	reader *game.Reader
	player *recording.Player
}

// openReplay opens a recording.
func openReplay(path string) (*replay, error) {
	file, err := os.Open(path)
	if err != nil {
		return nil, fmt.Errorf("there is nothing to play: %w", err)
	}
	r := &replay{path: path, name: filepath.Base(path), file: file, world: ecs.NewWorld(1024)}
	info, err := file.Stat()
	if err == nil && !info.Mode().IsRegular() {
		err = errors.New("it is no regular file")
	}
	if err == nil {
		schema, _ := game.NewSchema()
		r.size, r.reader = info.Size(), game.NewReader(&r.world, schema)
		r.player, err = recording.NewPlayer(&r.world, schema, file, r.size)
	}
	if err != nil {
		r.close()
		return nil, fmt.Errorf("%s can't be played: %s", r.name, trim(err))
	}
	return r, nil
}

func (r *replay) close() { _ = r.file.Close() } // it was only read

// trim returns the text of an error of package recording without its name.
func trim(err error) string { return strings.TrimPrefix(err.Error(), "recording: ") }

// runReplay plays a recording.
func runReplay(ctx context.Context, c *config, s *screen) (*played, error) {
	r, err := openReplay(c.replay)
	if err != nil {
		return nil, err
	}
	defer r.close()
	switch {
	case c.http != "":
		err = r.page(ctx, c, s)
		p := r.played(ctx)
		p.served = true
		return p, err
	case c.headless:
		return r.playAll(ctx)
	default:
		err = r.watch(ctx, s)
	}
	return r.played(ctx), err
}

// watch shows the recording by the clock.
func (r *replay) watch(ctx context.Context, s *screen) error {
	interpolation.Attach(r.player.Client())
	latest := ""
	r.player.OnMark(func(m recording.Mark) { latest = m.Text })
	s.printLine(fmt.Sprintf("arena: %s, %s", r.name, clock(r.player.Duration())))
	for dt := range loop.Frames(ctx, frameRate) {
		if err := r.player.Frame(dt); err != nil {
			return err
		}
		s.show(int(r.player.Position().Seconds()), func() frame { return r.picture(latest) })
		if r.player.Ended() {
			break
		}
	}
	return nil
}

// playAll plays everything as fast as possible.
func (r *replay) playAll(ctx context.Context) (*played, error) {
	most, ticks := 0, 0
	for !r.player.Ended() && ctx.Err() == nil {
		if err := r.player.Step(); err != nil {
			return nil, err
		}
		stats := r.player.Client().Stats()
		most = max(most, int(stats.Spawns-stats.Despawns))
		ticks++
	}
	p := r.played(ctx)
	p.Ticks, p.MostEntities = ticks, most
	return p, nil
}

// played is what is printed at the end of a replay.
type played struct {
	File         string            `json:"file"`
	Bytes        int64             `json:"bytes"`
	Seconds      float64           `json:"seconds"`
	Played       float64           `json:"played_seconds"`
	Ticks        int               `json:"ticks,omitempty"` // if all was played
	Entities     int               `json:"entities"`        // at the end
	MostEntities int               `json:"most_entities,omitempty"`
	Sum          string            `json:"sum"` // over all values of all entities, at the end
	Segments     int               `json:"segments"`
	Marks        []mark            `json:"marks"`
	Meta         map[string]string `json:"meta"`
	Damage       string            `json:"damage,omitempty"`
	Interrupted  bool              `json:"interrupted"`

	served bool // to browsers, which played it
}

// mark is one of the recording.
type mark struct {
	Seconds float64 `json:"seconds"`
	Text    string  `json:"text"`
}

func (r *replay) played(ctx context.Context) *played {
	now := r.reader.Census(r.player.Client().Entities())
	p := &played{
		File: r.path, Bytes: r.size, Seconds: r.player.Duration().Seconds(), Played: r.player.Position().Seconds(),
		Entities: now.Entities, Sum: hex(now.Sum), Segments: len(r.player.Segments()), Marks: []mark{},
		Meta: r.player.Meta(), Interrupted: ctx.Err() != nil,
	}
	for _, m := range r.player.Marks() {
		p.Marks = append(p.Marks, mark{m.At.Seconds(), m.Text})
	}
	if err := r.player.Damage(); err != nil {
		p.Damage = trim(err)
	}
	return p
}

// ok is always true: what is wrong with a recording is part of what it has.
func (p *played) ok() bool { return true }

func (p *played) writeJSON(w io.Writer) error {
	encoder := json.NewEncoder(w)
	encoder.SetIndent("", "  ")
	return encoder.Encode(p)
}

func (p *played) writeText(w io.Writer, columns int) error {
	seconds := func(s float64) string { return clock(time.Duration(s * float64(time.Second))) }
	var text strings.Builder
	switch {
	case p.served:
		fmt.Fprintf(&text, "Served %s, %s.", printable(p.File), seconds(p.Seconds))
	case p.Ticks == 0:
		fmt.Fprintf(&text, "Played %s, %s of %s.", printable(p.File), seconds(p.Played), seconds(p.Seconds))
	default:
		fmt.Fprintf(&text, "%s: %s, %s, %s, %.1f kbit/s, %s. %s at the end, at most %s.", printable(p.File),
			seconds(p.Seconds), count(p.Ticks, "tick"), count(uint64(p.Bytes), "byte"),
			8*per(float64(p.Bytes), p.Seconds)/1000, count(p.Segments, "segment"), count(p.Entities, "entity"),
			thousands(p.MostEntities))
		for _, key := range slices.Sorted(maps.Keys(p.Meta)) {
			fmt.Fprintf(&text, "\n  %s: %s", printable(key), printable(p.Meta[key]))
		}
		for _, m := range p.Marks {
			fmt.Fprintf(&text, "\n  %s  %s", seconds(m.Seconds), printable(m.Text))
		}
	}
	if p.Damage != "" {
		fmt.Fprintf(&text, "\n%s.", strings.ToUpper(p.Damage[:1])+p.Damage[1:])
	}
	_, err := fmt.Fprintln(w, wrap(text.String(), columns))
	return err
}

// clock writes a moment of a recording.
func clock(d time.Duration) string {
	hundredths := int(d.Round(10*time.Millisecond) / (10 * time.Millisecond))
	return fmt.Sprintf("%d:%02d.%02d", hundredths/6000, hundredths/100%60, hundredths%100)
}

package main

import (
	"flag"
	"math"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/mlange-42/arche/ecs"
	"github.com/mlange-42/arche/generic"
	"github.com/stretchr/testify/require"

	"github.com/arche-replicate/arche-replicate/examples/arena/game"
)

var update = flag.Bool("update", false, "write the frames of testdata anew")

// scenery is a world in which everything is at a known position.
func scenery(kills uint16, name string) *ecs.World {
	w := ecs.NewWorld()
	ships := generic.NewMap4[game.Position, game.Heading, game.Ship, game.Score](&w)
	for i, at := range [][2]float32{{-400, 400}, {400, 400}, {0, 0}, {-400, -400}, {400, -400}} {
		ships.NewWith(
			&game.Position{X: at[0], Y: at[1]}, &game.Heading{Angle: float32(float64(i) * math.Pi / 2)},
			&game.Ship{Number: uint16(i), Alive: i != 2}, &game.Score{Kills: uint16(4-i) * kills, Deaths: uint16(i)})
	}
	players := generic.NewMap5[game.Position, game.Heading, game.Ship, game.Score, game.Callsign](&w)
	players.NewWith(&game.Position{X: 100, Y: 0}, &game.Heading{}, &game.Ship{Number: 7, Alive: true}, &game.Score{}, &game.Callsign{Name: name})
	players.NewWith(&game.Position{X: -100, Y: 0}, &game.Heading{Angle: math.Pi}, &game.Ship{Number: 8, Alive: true}, &game.Score{}, &game.Callsign{Name: "Zoë 2"})
	shots := generic.NewMap2[game.Position, game.Bullet](&w)
	for x := -511; x <= 511; x += 73 {
		shots.NewWith(&game.Position{X: float32(x), Y: float32(x / 2)}, &game.Bullet{})
	}
	crates := generic.NewMap2[game.Position, game.PowerUp](&w)
	crates.NewWith(&game.Position{X: 200, Y: 200}, &game.PowerUp{Kind: game.HullPlus3})
	crates.NewWith(&game.Position{X: -200, Y: 200}, &game.PowerUp{Kind: game.NoPowerUp})
	match := game.Match{Phase: game.Fight, TimeLeft: 9}
	if kills > 0 {
		match.Kills = kills
		match.Leader = 7
	}
	matches := generic.NewMap1[game.Match](&w)
	matches.NewWith(&match)
	return &w
}

func testPicture(t *testing.T, views int, args ...string) *picture {
	c := testConfig(t, args...)
	p := &picture{
		c: &c, ticks: 300, limit: c.ticks,
		figures: figures{
			sent: 84.2, raw: 216.5, json: 4012.3, roundTrip: 7.9, age: 9.12, checks: 357661,
			traffic: traffic{Packets: 798, Lost: 41}, trend: []float64{0, 20, 40, 60, 80, 60, 84.2},
		},
	}
	for i := range views {
		p.views = append(p.views, view{[]string{"server: 24 entities", "client 1: 0 wrong, 5 ticks behind"}[i], scenery(3, "Ada 1")})
	}
	return p
}

func TestFrames(t *testing.T) {
	connected := testPicture(t, 1, "-connect", "127.0.0.1:9000", "-loss", "0.3")
	connected.views[0].title = "client 1: 0 differ"
	connected.figures.raw, connected.figures.frames, connected.figures.starved = 0, 1200, 3
	connected.figures.delay = 83 * time.Millisecond
	tests := []struct {
		file          string
		columns, rows int
		style         style
		picture       *picture
	}{
		{"local-80x24.txt", 80, 24, style{unicode: true}, testPicture(t, 2)},
		{"ascii-80x24.txt", 80, 24, style{}, testPicture(t, 2)},
		{"connect-80x24.txt", 80, 24, style{unicode: true}, connected},
		{"local-100x40.txt", 100, 40, style{unicode: true}, testPicture(t, 2, "-duration", "1m")},
		{"small-40x12.txt", 40, 12, style{unicode: true}, testPicture(t, 2)},
		{"colour-64x16.txt", 64, 16, style{unicode: true, colour: true}, testPicture(t, 2)},
	}
	for _, tt := range tests {
		t.Run(tt.file, func(t *testing.T) {
			got := strings.Join(tt.picture.draw(tt.columns, tt.rows, tt.style), "\n") + "\n"
			path := filepath.Join("testdata", tt.file)
			if *update {
				require.NoError(t, os.WriteFile(path, []byte(got), 0o644))
			}
			want, err := os.ReadFile(path)
			require.NoError(t, err)
			require.Equal(t, string(want), got)
		})
	}
}

var sgr = regexp.MustCompile("\x1b\\[[0-9;]*m")

func TestNoFrameIsLargerThanItsTerminal(t *testing.T) {
	p := testPicture(t, 2, "-loss", "0.12345", "-latency", "9999999us", "-jitter", "9999999us")
	p.figures.checks, p.figures.trend = math.MaxInt32, make([]float64, trendLength)
	one := *p
	one.views = p.views[:1]
	for _, picture := range []*picture{p, &one} {
		for columns := 0; columns < 260; columns += 19 {
			for rows := 0; rows < 70; rows += 5 {
				for _, s := range []style{{}, {unicode: true, colour: true}} {
					lines := picture.draw(columns, rows, s)
					require.Len(t, lines, rows)
					for _, line := range lines {
						text := sgr.ReplaceAllString(line, "")
						require.NotContains(t, text, "\x1b")
						require.LessOrEqual(t, width(text), columns, "%dx%d: %q", columns, rows, text)
						if !s.unicode {
							require.Equal(t, len(text), width(text), "only ASCII: %q", text)
						}
					}
				}
			}
		}
	}
}

func TestNoLeaderboardWithoutKills(t *testing.T) {
	require.Equal(t, "nobody ahead", look(scenery(0, "Ada 1")).standing())
	require.Equal(t, "Ada 1 ahead with 1 kill", look(scenery(1, "Ada 1")).standing())
	require.Equal(t, "Ada 1 ahead with 2 kills", look(scenery(2, "Ada 1")).standing())
	s := survey{match: game.Match{Leader: 84, Kills: 5}}
	require.Equal(t, "ship 84 ahead with 5 kills", s.standing(), "though it has left")
}

// A player on another machine chooses its name.
func TestNamesDoNothingToTheTerminal(t *testing.T) {
	p := testPicture(t, 1)
	p.views[0].world = scenery(1, "\x1b[2J\a\u202e界\t!")
	text := strings.Join(p.draw(80, 24, style{unicode: true}), "\n")
	require.NotContains(t, text, "\x1b")
	require.Contains(t, text, "?[2J????! ahead with 1 kill")
	require.Contains(t, p.plainRow(), "?[2J????! (1)")
}

func TestWrongEntitiesAreVisible(t *testing.T) {
	p := testPicture(t, 1)
	p.figures.wrong = 1
	require.Contains(t, strings.Join(p.draw(80, 24, style{}), "\n"), "worlds differ: 1 of 357,661 compared entities wrong")
	p.figures = figures{}
	text := strings.Join(p.draw(80, 24, style{}), "\n")
	require.Contains(t, text, "no entity of a mirror was compared yet")
	require.Contains(t, text, "saved - of snapshots, - of JSON")
	require.Contains(t, text, "round trip unknown, age of baselines unknown, lost 0 of 0 packets")
}

func TestPlainRowsStandBelowTheirHeads(t *testing.T) {
	p := testPicture(t, 1)
	require.Equal(t, width(plainHead), width(p.plainRow()))
	require.LessOrEqual(t, width(plainHead), 80)
	require.Equal(t, "  5.0 s  fight    Ada 1 (3)             84.2     4012  97.9 %      132 ms      0", p.plainRow())
}

func TestALinkInWords(t *testing.T) {
	tests := []struct {
		args []string
		want string
	}{
		{nil, "5 % lost, 40ms to 60ms late, 1 % doubled, 1 % overtaken, each way"},
		{[]string{"-loss", "0.125", "-jitter", "0", "-serve", ":1"}, "as it is; clients simulate a bad one"},
		{[]string{"-jitter", "80ms", "-dup", "0", "-connect", ":1"}, "5 % lost, 0s to 130ms late, 0 % doubled, 1 % overtaken, each way"},
	}
	for _, tt := range tests {
		c := testConfig(t, tt.args...)
		require.Equal(t, tt.want, c.link())
	}
}

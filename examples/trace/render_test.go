package main

import (
	"encoding/xml"
	"fmt"
	"io"
	"math"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

// circling is a trace of an entity 7 on a circle, a slower one 3, and one that rests, for so many seconds at 20 Hz.
func circling(names, types string, row func(x, y float64) string, seconds int) string {
	var b strings.Builder
	fmt.Fprintf(&b, "# rate 20\ntick,entity,%s\nuint32,uint32,%s\n", names, types)
	fmt.Fprintf(&b, "0,1,%s\n", row(5, 5))
	for tick := range 20 * seconds {
		sin, cos := math.Sincos(float64(tick) / 20 * math.Pi) // half a turn per second
		fmt.Fprintf(&b, "%d,3,%s\n%d,7,%s\n", tick, row(sin, cos), tick, row(10*cos, 10*sin))
	}
	return b.String()
}

func circle(seconds int) string {
	return circling("Position.X,Position.Y", `"float32 range=-50:50,step=0.01","float32 range=-50:50,step=0.01"`,
		func(x, y float64) string { return fmt.Sprintf("%.3f,%.3f", x, y) }, seconds)
}

// drawing is what a picture consists of.
type drawing struct {
	paths map[string][][]dot // by class, in the order of panels: points in pixels
	moves map[string][]int   // the same: how many times the pen is set down
	texts []string
}

// draw runs the program and parses its picture.
func draw(t *testing.T, trace string, args ...string) (d drawing, stdout string) {
	t.Helper()
	file := filepath.Join(t.TempDir(), "picture.svg")
	code, stdout, stderr := invoke(t, trace, append(args, "-render", file, "-in", "-")...)
	require.Equal(t, exitOK, code, stderr)
	require.Empty(t, stderr)
	svg, err := os.Open(file)
	require.NoError(t, err)
	defer func() { _ = svg.Close() }()
	d = drawing{paths: map[string][][]dot{}, moves: map[string][]int{}}
	for decoder := xml.NewDecoder(svg); ; {
		token, err := decoder.Token()
		if err == io.EOF {
			return d, stdout
		}
		require.NoError(t, err)
		switch token := token.(type) {
		case xml.CharData:
			d.texts = append(d.texts, strings.TrimSpace(string(token)))
		case xml.StartElement:
			attributes := map[string]string{}
			for _, a := range token.Attr {
				attributes[a.Name.Local] = a.Value
			}
			if token.Name.Local == "path" {
				class := attributes["class"]
				points, moves := parsePath(t, attributes["d"])
				d.paths[class], d.moves[class] = append(d.paths[class], points), append(d.moves[class], moves)
			}
		}
	}
}

func parsePath(t *testing.T, path string) (points []dot, moves int) {
	for part := range strings.SplitSeq(strings.ReplaceAll(path, "M", "L*"), "L") {
		if part == "" {
			continue
		}
		if strings.HasPrefix(part, "*") {
			moves++
		}
		x, y, ok := strings.Cut(strings.TrimPrefix(part, "*"), " ")
		require.True(t, ok, part)
		px, err := strconv.ParseFloat(x, 64)
		require.NoError(t, err)
		py, err := strconv.ParseFloat(y, 64)
		require.NoError(t, err)
		require.GreaterOrEqual(t, px, float64(marginLeft)-0.01)
		require.LessOrEqual(t, px, marginLeft+plotWidth+0.01)
		points = append(points, dot{px, py})
	}
	return points, moves
}

// heightAt returns the height of a path, in pixels.
func heightAt(path []dot, x float64) (y float64, ok bool) {
	for i := 1; i < len(path); i++ {
		if a, b := path[i-1], path[i]; a.time <= x && x <= b.time && a.time < b.time {
			return a.value + (b.value-a.value)*(x-a.time)/(b.time-a.time), true
		}
	}
	return 0, false
}

// behind returns how far a path is from another one that is delayed, in pixels of height: the mean.
func behind(path, truth []dot, delay float64) float64 {
	sum, n := 0.0, 0.0
	for _, p := range path {
		if y, ok := heightAt(truth, p.time-delay); ok {
			sum, n = sum+math.Abs(p.value-y), n+1
		}
	}
	return sum / n
}

// The picture shows interpolation on the true path, with the delay of the heading, and the newest state not so.
func TestRenderShowsTheDelayedTruth(t *testing.T) {
	d, stdout := draw(t, circle(10), "-rtt", "3", "-loss", "0.1", "-reorder", "0.1")
	require.Contains(t, stdout, "entity 7:", "the one that moves most")
	require.Contains(t, stdout, "10 % lost, 0 % doubled, 10 % held back, 50 ms one way")
	for _, want := range []string{"Position.X, in units of the trace", "seconds from the beginning of the trace", "interpolated", "newest state"} {
		require.Contains(t, d.texts, want)
	}
	_, rest, ok := strings.Cut(stdout, "interpolation is ")
	require.True(t, ok)
	var ms float64
	_, err := fmt.Sscanf(rest, "%f ms", &ms)
	require.NoError(t, err)
	require.Greater(t, ms, 100., "more than the way of packets and an interval")
	delay := ms / 1000 * plotWidth / 2 // in pixels; the picture shows 2 seconds

	require.Len(t, d.paths[classTruth], 2)
	require.Len(t, d.paths[classShown], 3, "one is the error")
	for axis, truth := range d.paths[classTruth] {
		require.Len(t, truth, 41)
		played, newest := d.paths[classShown][axis], d.paths[classNewest][axis]
		require.Greater(t, len(played), 250, "it moves in almost every frame")
		require.Greater(t, len(newest), 40)
		require.Equal(t, 1, d.moves[classShown][axis])
		require.Less(t, behind(played, truth, delay), 1., "pixels")
		require.Greater(t, behind(played, truth, 0), 20., "the delay is real")
		require.Greater(t, behind(newest, truth, plotWidth/2*0.05), 3., "it stands still between states")
	}
	mean := func(path []dot) (sum float64) {
		for _, p := range path {
			sum += p.value / float64(len(path))
		}
		return sum
	}
	require.Greater(t, mean(d.paths[classShown][2]), mean(d.paths[classNewest][2])+10, "it is lower, nearer to 0")
}

// Where an entity is gone, no line is drawn.
func TestRenderLeavesGaps(t *testing.T) {
	trace := "# rate 20\ntick,entity,P.X,P.Y\nuint32,uint32,float32,float32\n"
	for tick := range 100 {
		if tick >= 70 && tick < 80 {
			trace += fmt.Sprintf("%d,4,,\n", tick)
		} else {
			trace += fmt.Sprintf("%d,4,%d,1\n", tick, tick)
		}
	}
	d, _ := draw(t, trace, "-rtt", "2", "-entity", "4", "-from", "2.5s", "-span", "2.4s")
	for _, class := range []string{classTruth, classNewest, classShown} {
		require.Equal(t, 2, d.moves[class][0], class)
	}
}

// Positions may be a part of a component, arrays, or of 64 bits.
func TestRenderFindsPositions(t *testing.T) {
	for _, c := range []struct {
		names, types, format, panel string
	}{
		{"Velocity.X,Velocity.Y,Position.X,Position.Y", "float32,float32,float32,float32", "0,0,%.2f,%.2f", "Position.X"},
		{"Name.N,Body.Z,Body.Heading,Body.X,Body.Y", `uint8,float32,"float32 angle,bits=8",float32 half,float32`, "3,2,1,%.2f,%.2f", "Body.X"},
		{"Where.At[0],Where.At[1],Where.N", "[2]float64 range=-50:50:,,uint8", "%.2f,%.2f,9", ""},
		{"Where.At[0],Where.At[1],Where.N", `"[2]float64 range=-50:50,precision=0.01",,uint8`, "%.2f,%.2f,9", "Where.At[0]"},
		{"P.X,P.Y", "float64,float64", "%.2f,%.2f", "P.X"},
		{"P.X[0],P.X[1],P.X[2],P.X[3]", "[4]float32,,,", "%.2f,%.2f,1,2", ""},
		{"P.X[0],P.X[1],P.Y", "[2]float32,,float32", "%.2f,%.2f,1", "P.X[0]"},
	} {
		trace := circling(c.names, c.types, func(x, y float64) string { return fmt.Sprintf(c.format, x, y) }, 4)
		if c.panel == "" {
			code, _, stderr := invoke(t, trace, "-render", "never.svg", "-in", "-")
			require.Equal(t, exitUsage, code)
			require.Contains(t, stderr, "looks like a position")
			continue
		}
		d, _ := draw(t, trace, "-rtt", "2")
		require.Contains(t, d.texts, c.panel+", in units of the trace")
		truth, played := d.paths[classTruth][0], d.paths[classShown][0]
		require.NotEmpty(t, truth)
		require.Greater(t, len(played), 280)
	}
}

// The network carries what the trace has.
func TestCarvedPositionKeepsTheSchema(t *testing.T) {
	for _, types := range []string{
		`"float32 range=-50:50,step=0.01","float32 range=-5:1e2,precision=0.25"`,
		`float64,"float64 range=0:9,step=0.5,jump"`,
		`float32 half,float32 raw`,
		`"float32 range=0:9,step=0.5,linear","float32 range=0:9,step=0.5,counter"`,
	} {
		text := "tick,entity,Position.X,Position.Y\nuint32,uint32," + types + "\n0,0,1,1\n"
		r, err := newReader("trace", strings.NewReader(text))
		require.NoError(t, err)
		plain, err := buildSchema(r.components)
		require.NoError(t, err)
		_, err = r.carve()
		require.NoError(t, err)
		carved, err := buildSchema(r.components)
		require.NoError(t, err)
		require.Equal(t, plain.Text(), carved.Text())
	}
}

func TestWrongUseOfRenderIsOneSentence(t *testing.T) {
	dir := t.TempDir()
	file := filepath.Join(dir, "picture.svg")
	for _, c := range []struct {
		want, trace string
		args        []string
	}{
		{"standard input: line 2: " + errNoPosition.Error(), "tick,entity,Health.HP,Turn.X,Turn.Y\nuint32,uint32,uint8,\"float32 angle,bits=8\",\"float32 angle,bits=8\"\n0,1,2,3,4\n", nil},
		{"no entity in standard input has a position", "tick,entity,P.X,P.Y\nuint32,uint32,float32,float32\n0,1,,\n", nil},
		{"entity 2 of standard input is not to be seen between 2.00 s and 2.95 s", circle(3), []string{"-entity", "2", "-from", "2s"}},
		{"entity 7 of standard input is not to be seen between 60.00 s and 60.00 s", circle(3), []string{"-from", "1m"}},
		{"standard input has 2000 ticks per second, but -render draws up to 1000", "# rate 2000" + circle(1)[len("# rate 20"):], nil},
		{"-render draws a picture: leave out -advice, -tune and -json", "", []string{"-json"}},
		{"-render has one client, not 2", "", []string{"-peers", "2"}},
		{"-fps is 0.5, but must be 1 to 1000 frames per second", "", []string{"-fps", "0.5"}},
		{"-span is 1h0m0s, but must be 100ms to 1m0s", "", []string{"-span", "1h"}},
		{"-from is -1s, but must not be negative", "", []string{"-from", "-1s"}},
	} {
		code, stdout, stderr := invoke(t, c.trace, append(c.args, "-render", file, "-in", "-")...)
		require.Equal(t, exitUsage, code, c.want)
		require.Empty(t, stdout, c.want)
		require.Equal(t, "trace: "+c.want+"\n", stderr)
	}
	require.NoFileExists(t, file)
}

// Command compare replays recordings through arche-replicate and through other ways to send the same
// quantised state, and prints the bytes per tick of each as a table.
//
//	go run ./compare [-docs ..] [-ticks N] [-best] FILE:ROUNDTRIP...
//
// A recording is a file for examples/trace; the round trip is in ticks. With -docs the table also goes into
// benchmarks.md in that directory, and a picture beside it.
//
// Every method codes each tick against what was acknowledged: the state a round trip before. A receiver
// decodes every tick from what it received, and the command fails if it has another state than the sender.
package main

import (
	"bytes"
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"

	"github.com/arche-replicate/arche-replicate/docs/benchmarks/page"
	"github.com/klauspost/compress/zstd"
)

func main() {
	docs := flag.String("docs", "", "`directory` of benchmarks.md, which gets the table, and of the picture")
	ticks := flag.Int("ticks", 0, "use the first `ticks` of each recording only; 0 is all")
	best := flag.Bool("best", false, "use the best level of zstd: ten times slower, some per cent smaller")
	flag.Parse()
	level := zstd.SpeedBetterCompression
	if *best {
		level = zstd.SpeedBestCompression
	}
	if err := compare(flag.Args(), *ticks, level, *docs); err != nil {
		fmt.Fprintln(os.Stderr, "compare:", err)
		os.Exit(1)
	}
}

// result is the bytes per tick of all methods for a recording.
type result struct {
	name string
	rtt  int
	rows []bar
	note string // the layout of zstd
}

// bar is a method's bytes per tick.
type bar struct {
	method    string
	bytes     float64
	ours      bool
	published bool // by others, not measured here
}

func compare(files []string, ticks int, level zstd.EncoderLevel, docs string) error {
	if len(files) == 0 {
		return errors.New("no recordings: name them as FILE:ROUNDTRIP, such as cubes.trace.csv.zst:6")
	}
	dir, err := os.MkdirTemp("", "compare")
	if err != nil {
		return err
	}
	defer func() { _ = os.RemoveAll(dir) }()
	tool := filepath.Join(dir, "trace")
	root, err := exec.Command("go", "list", "-m", "-f", "{{.Dir}}", "github.com/arche-replicate/arche-replicate").Output()
	if err != nil {
		return err
	}
	build := exec.Command("go", "build", "-o", tool, "./examples/trace")
	build.Dir = strings.TrimSpace(string(root))
	if out, err := build.CombinedOutput(); err != nil {
		return fmt.Errorf("%w: %s", err, out)
	}
	var results []result
	for _, file := range files {
		r, err := compareFile(tool, file, ticks, level)
		if err != nil {
			return fmt.Errorf("%s: %w", file, err)
		}
		fmt.Fprintf(os.Stderr, "%s done\n", r.name)
		results = append(results, r)
	}
	table := markdown(results)
	fmt.Print(table)
	if docs == "" {
		return nil
	}
	if err := os.WriteFile(filepath.Join(docs, "bytes-per-tick.svg"), plot(results), 0o644); err != nil {
		return err
	}
	return page.Insert(filepath.Join(docs, "benchmarks.md"), "compare", table)
}

// compareFile measures all methods on a recording.
func compareFile(tool, file string, ticks int, level zstd.EncoderLevel) (result, error) {
	path, trip, ok := strings.Cut(file, ":")
	rtt, err := strconv.Atoi(trip)
	if !ok || err != nil || rtt < 1 {
		return result{}, errors.New("a round trip of at least 1 tick must follow the name: FILE:6")
	}
	name, _, _ := strings.Cut(filepath.Base(path), ".")
	out := result{name: name, rtt: rtt}
	add := func(method string, bytes float64, ours bool) {
		out.rows = append(out.rows, bar{method: method, bytes: bytes, ours: ours})
	}
	for _, coding := range []string{"compact", "packed"} {
		bytes, err := replay(tool, path, coding, rtt, ticks)
		if err != nil {
			return out, err
		}
		add(strings.ToUpper(coding[:1])+coding[1:], bytes, true)
	}
	codes, err := exec.Command(tool, "-codes", "-ticks", strconv.Itoa(ticks), path).Output()
	if err != nil {
		return out, err
	}
	r, err := read(bytes.NewReader(codes))
	if err != nil {
		return out, err
	}
	size, layout, err := r.measureZstd(rtt, level)
	if err != nil {
		return out, err
	}
	add("zstd, "+level.String(), size, false)
	out.note = layout
	for i := range methods {
		size, err := r.measure(&methods[i], rtt)
		if err != nil {
			return out, err
		}
		add(methods[i].name, size, false)
	}
	out.rows = append(out.rows, published[name+":"+trip]...)
	return out, nil
}

// replay returns the bytes of entity data per tick that the library sends. It fails if a client showed a wrong state.
func replay(tool, path, coding string, rtt, ticks int) (float64, error) {
	var messages bytes.Buffer
	cmd := exec.Command(tool, "-json", "-coding", coding, "-rtt", strconv.Itoa(rtt), "-ticks", strconv.Itoa(ticks), path)
	cmd.Stderr = &messages
	out, err := cmd.Output()
	if err != nil {
		return 0, fmt.Errorf("%w: %s", err, &messages)
	}
	var report struct {
		Bytes float64 `json:"entity_bytes_per_tick"`
	}
	return report.Bytes, json.Unmarshal(out, &report)
}

// published has figures that others published, or that were measured with other programs. They are of the same
// game, but not always of the same recording.
var published = map[string][]bar{
	"cubes:6": {
		{method: "Giesen, gaffer_net", bytes: 394.5, published: true},
		{method: "Fiedler, by hand", bytes: 525, published: true},
	},
	"arena:6": {
		{method: "colyseus, reliable", bytes: 9269, published: true},
		{method: "nengi, reliable", bytes: 10994, published: true},
		{method: "msgpack, floats", bytes: 22576, published: true},
	},
}

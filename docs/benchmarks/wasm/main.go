// Command wasm builds clients for browsers and prints how large they are, and how long a tick takes there, as tables.
//
//	go run ./wasm [-docs ..]
//
// With -docs the tables also go into benchmarks.md in that directory. The clients have the components and messages of
// examples/arena. The times need Node.js.
package main

import (
	"bytes"
	"compress/gzip"
	"embed"
	"flag"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"

	"github.com/arche-replicate/arche-replicate/docs/benchmarks/page"
)

func main() {
	docs := flag.String("docs", "", "`directory` of benchmarks.md, which gets the table")
	flag.Parse()
	if err := run(*docs); err != nil {
		fmt.Fprintln(os.Stderr, "wasm:", err)
		os.Exit(1)
	}
}

func run(docs string) error {
	table, err := table()
	if err != nil {
		return err
	}
	times, err := times()
	if err != nil {
		return err
	}
	table += "\n" + times
	fmt.Print(table)
	if docs == "" {
		return nil
	}
	return page.Insert(filepath.Join(docs, "benchmarks.md"), "wasm", table)
}

// Each program is one of these files, with those of the arena's schema.
//
//go:embed testdata/*.go
var sources embed.FS

var programs = []struct{ name, what string }{
	{"nothing", "Go and `syscall/js` only"},
	{"replication", "a client"},
	{"interpolation", "a client with interpolation"},
}

func table() (string, error) {
	var b strings.Builder
	b.WriteString("| program | MB | MB, gzip |\n|---|---:|---:|\n")
	for _, p := range programs {
		raw, zipped, err := build(p.name)
		if err != nil {
			return "", err
		}
		fmt.Fprintf(&b, "| %s | %.2f | %.3f |\n", p.what, float64(raw)/1e6, float64(zipped)/1e6)
	}
	raw, zipped, err := compile("the page's", "./examples/arena/client")
	if err != nil {
		return "", err
	}
	fmt.Fprintf(&b, "| the client of the arena's page | %.2f | %.3f |\n", float64(raw)/1e6, float64(zipped)/1e6)
	return b.String(), nil
}

// library returns the directory of the library.
func library() (string, error) {
	list, err := exec.Command("go", "list", "-m", "-f", "{{.Dir}}", "github.com/arche-replicate/arche-replicate").Output()
	return strings.TrimSpace(string(list)), err
}

// build returns the size of a program, as it is and compressed.
func build(name string) (raw, zipped int, err error) {
	dir, err := os.MkdirTemp("", "wasm")
	if err != nil {
		return 0, 0, err
	}
	defer func() { _ = os.RemoveAll(dir) }()
	root, err := library()
	if err != nil {
		return 0, 0, err
	}
	files, err := write(dir, root, name)
	if err != nil {
		return 0, 0, err
	}
	return compile(name, files...)
}

// compile returns the size of a program of these files, or of a package of the library.
func compile(name string, files ...string) (raw, zipped int, err error) {
	dir, err := os.MkdirTemp("", "wasm")
	if err != nil {
		return 0, 0, err
	}
	defer func() { _ = os.RemoveAll(dir) }()
	root, err := library()
	if err != nil {
		return 0, 0, err
	}
	binary := filepath.Join(dir, "client.wasm")
	cmd := exec.Command("go", append([]string{"build", "-trimpath", "-ldflags=-s -w", "-o", binary}, files...)...)
	cmd.Dir = root // whose go.mod has what clients need
	cmd.Env = append(os.Environ(), "GOOS=js", "GOARCH=wasm")
	if out, err := cmd.CombinedOutput(); err != nil {
		return 0, 0, fmt.Errorf("build %s: %w: %s", name, err, out)
	}
	program, err := os.ReadFile(binary)
	if err != nil {
		return 0, 0, err
	}
	var compressed bytes.Buffer
	w, err := gzip.NewWriterLevel(&compressed, gzip.BestCompression)
	if err != nil {
		return 0, 0, err
	}
	if _, err := w.Write(program); err != nil {
		return 0, 0, err
	}
	if err := w.Close(); err != nil {
		return 0, 0, err
	}
	return len(program), compressed.Len(), nil
}

// write puts the source files of a program into a directory; root is that of the library.
func write(dir, root, name string) (files []string, err error) {
	texts := map[string][]byte{}
	names := []string{name + ".go"}
	if name != "nothing" {
		names = append(names, "client.go")
		for _, file := range []string{"components.go", "messages.go"} {
			text, err := os.ReadFile(filepath.Join(root, "examples", "arena", "game", file))
			if err != nil {
				return nil, err
			}
			texts[file] = bytes.Replace(text, []byte("package game"), []byte("package main"), 1)
		}
	}
	for _, file := range names {
		if texts[file], err = sources.ReadFile("testdata/" + file); err != nil {
			return nil, err
		}
	}
	for file, text := range texts {
		path := filepath.Join(dir, file)
		if err := os.WriteFile(path, text, 0o644); err != nil {
			return nil, err
		}
		files = append(files, path)
	}
	return files, nil
}

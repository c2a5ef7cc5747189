//go:build !js

package main

import (
	"bufio"
	"bytes"
	"compress/gzip"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"time"
)

// clientPackage is what the page's client is compiled from.
const clientPackage = "github.com/arche-replicate/arche-replicate/examples/arena/client"

// build compiles the page's client, and serves it and what belongs to it.
type build struct {
	mu       sync.Mutex
	progress progress
	began    time.Time
	wasm     []byte // compressed by gzip
	loader   []byte // wasm_exec.js of the same toolchain

	found chan struct{} // closed when the loader is there, or will never be
}

// progress is what the page shows meanwhile.
type progress struct {
	Phase    string  `json:"phase"`
	Seconds  float64 `json:"seconds"`
	Packages int     `json:"packages"` // compiled so far
	Of       int     `json:"of"`       // as many as there are; 0 if unknown. Those in the cache are not compiled.
	Done     bool    `json:"done"`
	Error    string  `json:"error"`

	Recording string `json:"recording,omitempty"` // the name of what the page plays; without, it is a match
}

func newBuild(recording string) *build {
	return &build{
		began: time.Now(), found: make(chan struct{}),
		progress: progress{Phase: "looking for the packages", Recording: recording},
	}
}

func (b *build) report(change func(p *progress)) {
	b.mu.Lock()
	defer b.mu.Unlock()
	change(&b.progress)
	b.progress.Seconds = tenth(time.Since(b.began).Seconds())
}

// run compiles. It returns the error that the page shows.
func (b *build) run(ctx context.Context) error {
	err := b.compile(ctx)
	b.report(func(p *progress) {
		p.Phase, p.Done = "ready", err == nil
		if err != nil {
			p.Phase, p.Error = "failed", err.Error()
		}
	})
	return err
}

// find finds the script that pages load for programs of this toolchain.
func (b *build) find(ctx context.Context) error {
	defer close(b.found)
	root, err := goTool(ctx, "env", "GOROOT")
	if err != nil {
		return err
	}
	loader, err := os.ReadFile(filepath.Join(strings.TrimSpace(root), "lib", "wasm", "wasm_exec.js"))
	if err != nil {
		return fmt.Errorf("this Go installation has no wasm_exec.js, which pages load: %w", err)
	}
	b.mu.Lock()
	defer b.mu.Unlock()
	b.loader = loader
	return nil
}

func (b *build) compile(ctx context.Context) error {
	if err := b.find(ctx); err != nil {
		return err
	}
	packages, err := goTool(ctx, "list", "-deps", clientPackage)
	if err != nil {
		return err
	}
	b.report(func(p *progress) { p.Phase, p.Of = "compiling", strings.Count(packages, "\n") })

	directory, err := os.MkdirTemp("", "arena")
	if err != nil {
		return fmt.Errorf("there is no directory for the compiler: %w", err)
	}
	defer func() { _ = os.RemoveAll(directory) }() // the system does it otherwise
	file := filepath.Join(directory, "client.wasm")
	command := goCommand(ctx, "build", "-v", "-trimpath", "-ldflags=-s -w", "-o", file, clientPackage)
	lines, err := command.StderrPipe()
	if err != nil {
		return err
	}
	if err := command.Start(); err != nil {
		return noGo(err)
	}
	var output []string
	for scan := bufio.NewScanner(lines); scan.Scan(); {
		output = append(output, scan.Text())
		b.report(func(p *progress) { p.Packages++ })
	}
	if err := command.Wait(); err != nil {
		return fmt.Errorf("the client for the page does not compile: %w\n%s", err, strings.Join(output, "\n"))
	}
	b.report(func(p *progress) { p.Phase = "compressing" })
	raw, err := os.ReadFile(file)
	if err != nil {
		return err
	}
	var compressed bytes.Buffer
	zip := gzip.NewWriter(&compressed)
	if _, err := zip.Write(raw); err != nil {
		return err
	}
	if err := zip.Close(); err != nil {
		return err
	}
	b.mu.Lock()
	defer b.mu.Unlock()
	b.wasm = compressed.Bytes()
	return nil
}

// findClient returns why the client can't be compiled here, if its source is not there.
func findClient(ctx context.Context) error {
	_, err := goTool(ctx, "list", clientPackage)
	return err
}

// goCommand is a command of the Go toolchain for WebAssembly.
func goCommand(ctx context.Context, args ...string) *exec.Cmd {
	command := exec.CommandContext(ctx, "go", args...)
	command.Env = append(os.Environ(), "GOOS=js", "GOARCH=wasm")
	return command
}

// goTool returns what such a command prints.
func goTool(ctx context.Context, args ...string) (string, error) {
	out, err := goCommand(ctx, args...).Output()
	var failed *exec.ExitError
	switch {
	case errors.As(err, &failed):
		return "", fmt.Errorf("run the arena in a clone of its repository, since the page's client is compiled there: "+
			"go %s: %s", args[0], bytes.TrimSpace(failed.Stderr))
	case err != nil:
		return "", noGo(err)
	}
	return string(out), nil
}

func noGo(err error) error {
	return fmt.Errorf("the client for the page is compiled by Go, which does not run here: %w", err)
}

// serveStatus serves the progress.
func (b *build) serveStatus(w http.ResponseWriter, _ *http.Request) {
	b.report(func(p *progress) {
		if p.Done || p.Error != "" {
			b.began = time.Now().Add(-time.Duration(p.Seconds * float64(time.Second))) // it stands still
		}
	})
	b.mu.Lock()
	p := b.progress
	b.mu.Unlock()
	writeJSON(w, p)
}

// serveWasm serves the client.
func (b *build) serveWasm(w http.ResponseWriter, r *http.Request) {
	b.mu.Lock()
	wasm := b.wasm
	b.mu.Unlock()
	if wasm == nil {
		notYet(w)
		return
	}
	w.Header().Set("Content-Type", "application/wasm")
	w.Header().Set("Content-Encoding", "gzip")
	http.ServeContent(w, r, "", time.Time{}, bytes.NewReader(wasm))
}

// serveLoader serves wasm_exec.js, which it waits for.
func (b *build) serveLoader(w http.ResponseWriter, r *http.Request) {
	select {
	case <-b.found:
	case <-r.Context().Done():
		return
	}
	b.mu.Lock()
	loader := b.loader
	b.mu.Unlock()
	if loader == nil {
		notYet(w)
		return
	}
	w.Header().Set("Content-Type", "text/javascript; charset=utf-8")
	http.ServeContent(w, r, "", time.Time{}, bytes.NewReader(loader))
}

func notYet(w http.ResponseWriter) {
	http.Error(w, "the client is not compiled yet: see /status", http.StatusServiceUnavailable)
}

func writeJSON(w http.ResponseWriter, value any) {
	w.Header().Set("Content-Type", "application/json")
	_ = json.NewEncoder(w).Encode(value) // lost: the page asks again
}

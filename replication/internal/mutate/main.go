package main

import (
	"bytes"
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"maps"
	"os"
	"os/exec"
	"os/signal"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"sync"
	"time"
)

// What became of a fault.
const (
	killed     = "killed"
	survived   = "SURVIVED"
	equivalent = "equivalent"
)

type result struct {
	*mutant
	what string
	by   string // the package and the test that noticed
	took time.Duration
}

func main() {
	if err := run(); err != nil {
		fmt.Fprintln(os.Stderr, "mutate:", err)
		os.Exit(1)
	}
}

func run() error {
	pattern := flag.String("run", "", "plant only faults whose area, package and function match this `pattern`")
	list := flag.Bool("list", false, "check that every fault can be planted, and run nothing")
	workers := flag.Int("j", 2, "how many faults to try at a time")
	timeout := flag.Duration("timeout", 5*time.Minute,
		"how long the tests of a package may take; a fault that makes them hang counts as killed")
	flag.Parse()
	mutants, err := chosen(*pattern)
	if err != nil {
		return err
	}
	for _, m := range mutants { // before the first test: a list that is out of date is found at once
		if _, _, planted := m.plant(); planted != nil {
			err = errors.Join(err, planted)
		}
	}
	if err != nil || *list {
		fmt.Printf("%d faults\n", len(mutants))
		return err
	}
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt)
	defer stop()
	return report(try(ctx, mutants, *workers, *timeout))
}

func chosen(pattern string) (mutants []*mutant, err error) {
	wanted, err := regexp.Compile(pattern)
	if err != nil {
		return nil, err
	}
	text, err := os.ReadFile(filepath.Join("replication", "internal", "mutate", "mutants.txt"))
	if err != nil {
		return nil, fmt.Errorf("run it from the root of the module: %w", err)
	}
	if mutants, err = parseMutants(text); err != nil {
		return nil, err
	}
	return slices.DeleteFunc(mutants, func(m *mutant) bool { return !wanted.MatchString(m.String()) }), nil
}

// try plants the faults one after the other, a few at a time, and prints what becomes of each.
func try(ctx context.Context, mutants []*mutant, workers int, timeout time.Duration) ([]result, error) {
	results := make([]result, len(mutants))
	next := make(chan int)
	var group sync.WaitGroup
	var mutex sync.Mutex
	var failed error
	done := 0
	for range workers {
		group.Go(func() {
			for i := range next {
				r, err := mutants[i].try(ctx, timeout)
				mutex.Lock()
				results[i], failed = r, errors.Join(failed, err)
				done++
				if err == nil {
					fmt.Printf("%3d/%d %-10s %-40s %4.0fs %s\n",
						done, len(mutants), r.what, r.mutant, r.took.Seconds(), r.by)
				}
				mutex.Unlock()
			}
		})
	}
	for i := range mutants {
		if ctx.Err() == nil {
			next <- i
		}
	}
	close(next)
	group.Wait()
	return results, cmp.Or(failed, ctx.Err())
}

// try plants a fault and runs tests until one fails.
func (m *mutant) try(ctx context.Context, timeout time.Duration) (result, error) {
	r, begin := result{mutant: m, what: survived}, time.Now()
	if m.reason != "" {
		r.what, r.by = equivalent, m.reason
		return r, nil
	}
	file, text, err := m.plant()
	if err != nil {
		return r, err
	}
	overlay, remove, err := overlayOf(file, text)
	if err != nil {
		return r, err
	}
	defer remove()
	for _, test := range m.tests() {
		name, pattern, _ := strings.Cut(test, ":")
		by, err := runTests(ctx, overlay, "./"+name, pattern, timeout)
		if err != nil {
			return r, fmt.Errorf("mutants.txt:%d: %s: %w", m.line, m, err)
		}
		if by != "" {
			r.what, r.by = killed, by
			break
		}
	}
	r.took = time.Since(begin)
	return r, nil
}

// tests returns the packages whose tests could notice, those that take the least time first.
func (m *mutant) tests() []string {
	list := []string{m.dir}
	if m.more != "" {
		list = append(list, m.more)
	}
	if m.dir != "replication" && strings.HasPrefix(m.dir, "replication") || !strings.Contains(m.dir, "/") {
		list = append(list, "replication")
	}
	return slices.Compact(list)
}

// overlayOf writes what makes the compiler read text in place of a file.
func overlayOf(file string, text []byte) (overlay string, remove func(), err error) {
	dir, err := os.MkdirTemp("", "mutate")
	if err != nil {
		return "", nil, err
	}
	remove = func() { _ = os.RemoveAll(dir) } // the system's own sweep finds what is left
	file, err = filepath.Abs(file)
	if err != nil {
		return "", remove, err
	}
	changed := filepath.Join(dir, filepath.Base(file))
	replace, err := json.Marshal(map[string]map[string]string{"Replace": {file: changed}})
	if err != nil {
		return "", remove, err
	}
	overlay = filepath.Join(dir, "overlay.json")
	err = errors.Join(os.WriteFile(changed, text, 0o600), os.WriteFile(overlay, replace, 0o600))
	return overlay, remove, err
}

var failedTest = regexp.MustCompile(`(?m)^--- FAIL: (\S+)|^panic: (.*)|^(fatal error: .*)`)

// runTests returns the test that failed, or nothing.
func runTests(ctx context.Context, overlay, pkg, pattern string, timeout time.Duration) (by string, err error) {
	args := []string{"test", "-short", "-failfast", "-vet=off", "-overlay", overlay, "-timeout", timeout.String()}
	if pattern != "" {
		args = append(args, "-run", pattern)
	}
	test := exec.CommandContext(ctx, "go", append(args, pkg)...)
	out, err := test.CombinedOutput()
	var exit *exec.ExitError
	switch {
	case err == nil:
		return "", nil
	case ctx.Err() != nil:
		return "", ctx.Err()
	case !errors.As(err, &exit):
		return "", err
	case bytes.Contains(out, []byte("[build failed]")) || bytes.Contains(out, []byte("[setup failed]")):
		return "", fmt.Errorf("does not compile:\n%s", out)
	}
	if found := failedTest.FindSubmatch(out); found != nil {
		return strings.TrimPrefix(pkg, "./") + " " + string(bytes.Join(found[1:], nil)), nil
	}
	return strings.TrimPrefix(pkg, "./"), nil
}

// report prints a table by area, and what survived.
func report(results []result, err error) error {
	if err != nil {
		return err
	}
	type count struct{ killed, equivalent, survived int }
	areas, all := map[string]*count{}, &count{}
	for _, r := range results {
		if areas[r.area] == nil {
			areas[r.area] = &count{}
		}
		for _, c := range []*count{areas[r.area], all} {
			switch r.what {
			case killed:
				c.killed++
			case equivalent:
				c.equivalent++
			case survived:
				c.survived++
			}
		}
	}
	fmt.Printf("\n%-14s %7s %10s %9s\n", "", killed, equivalent, "survived")
	for _, name := range slices.Sorted(maps.Keys(areas)) {
		fmt.Printf("%-14s %7d %10d %9d\n", name, areas[name].killed, areas[name].equivalent, areas[name].survived)
	}
	share := 100 * float64(all.killed) / float64(max(1, all.killed+all.survived))
	fmt.Printf("%-14s %7d %10d %9d   %.1f %% of %d that are not equivalent were killed\n",
		"all", all.killed, all.equivalent, all.survived, share, all.killed+all.survived)
	for _, r := range results {
		if r.what == survived {
			fmt.Printf("\nmutants.txt:%d: %s\n  - %s\n  + %s\n", r.line, r.mutant, r.old, r.new)
		}
	}
	if all.survived*20 > all.killed+all.survived {
		return fmt.Errorf("%d survived: more than one in twenty", all.survived)
	}
	return nil
}

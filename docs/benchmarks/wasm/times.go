package main

import (
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
)

// result is what the command ticks prints.
type result struct {
	Compact        bool
	Entities       int
	Bytes          float64
	Receive, Frame float64
}

const rounds = 3

// times plays a match of the arena natively and in WebAssembly, in turn, and returns a table.
func times() (string, error) {
	dir, err := os.MkdirTemp("", "wasm")
	if err != nil {
		return "", err
	}
	defer func() { _ = os.RemoveAll(dir) }()
	goroot, err := exec.Command("go", "env", "GOROOT").Output()
	if err != nil {
		return "", err
	}
	native, wasm := filepath.Join(dir, "ticks"), filepath.Join(dir, "ticks.wasm")
	for binary, env := range map[string][]string{native: nil, wasm: {"GOOS=js", "GOARCH=wasm"}} {
		cmd := exec.Command("go", "build", "-trimpath", "-o", binary, "./wasm/ticks")
		cmd.Env = append(os.Environ(), env...)
		if out, err := cmd.CombinedOutput(); err != nil {
			return "", fmt.Errorf("build ticks: %w: %s", err, out)
		}
	}
	commands := [2][]string{{native}, {"node", filepath.Join(strings.TrimSpace(string(goroot)), "lib", "wasm", "wasm_exec_node.js"), wasm}}
	var runs [2][][]result
	for range rounds {
		for i, command := range commands {
			cmd := exec.Command(command[0], command[1:]...)
			cmd.Env = []string{"PATH=" + os.Getenv("PATH")} // a program in WebAssembly has room for little more
			cmd.Stderr = os.Stderr
			out, err := cmd.Output()
			if err != nil {
				return "", fmt.Errorf("%s: %w", command[0], err)
			}
			var r []result
			if err := json.Unmarshal(out, &r); err != nil {
				return "", err
			}
			runs[i] = append(runs[i], r)
		}
	}
	var b strings.Builder
	b.WriteString("| µs per tick, median | native | WebAssembly | |\n|---|---:|---:|---:|\n")
	for i, first := range runs[0][0] {
		coding := "Packed"
		if first.Compact {
			coding = "Compact"
		}
		for _, part := range []struct {
			name string
			of   func(r result) float64
		}{
			{"Receive", func(r result) float64 { return r.Receive }},
			{"Frame", func(r result) float64 { return r.Frame }},
		} {
			var least [2]float64 // of the rounds: the others were disturbed
			for k := range runs {
				var all []float64
				for _, round := range runs[k] {
					all = append(all, part.of(round[i]))
				}
				least[k] = slices.Min(all)
			}
			fmt.Fprintf(&b, "| %s, %s: %d entities, %.0f bytes | %.0f | %.0f | %.1fx |\n", coding, part.name, first.Entities, first.Bytes,
				least[0], least[1], least[1]/least[0])
		}
	}
	return b.String(), nil
}

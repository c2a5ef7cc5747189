package main

import (
	"errors"
	"fmt"
	"io"
	"os"
)

// Exit codes.
const (
	exitOK    = 0
	exitWrong = 1 // a client showed a wrong state
	exitUsage = 2 // a flag or the trace is not valid
)

func main() {
	os.Exit(command(os.Args[1:], os.Stdin, os.Stdout, os.Stderr))
}

// command runs the program and returns the exit code.
func command(args []string, stdin io.Reader, stdout, stderr io.Writer) int {
	cfg, err := parseFlags(args)
	if errors.Is(err, errHelp) {
		err = printHelp(stdout)
		if err == nil {
			return exitOK
		}
	}
	if err != nil {
		return complain(stderr, err)
	}
	if cfg.explain != "" {
		return explainFile(cfg, stdout, stderr)
	}
	file, err := openTrace(cfg.in, stdin)
	if err != nil {
		return complain(stderr, err)
	}
	defer func() { _ = file.Close() }() // it was only read
	cfg.notes = &notes{}
	defer cfg.notes.print(stderr)

	bar := newProgressBar(stderr)
	if cfg.render != "" {
		return render(cfg, file, bar, stdout, stderr)
	}
	if cfg.codes {
		if err := writeCodes(cfg, file, stdout); err != nil {
			return complain(stderr, err)
		}
		return exitOK
	}
	var r report
	switch {
	case cfg.advice:
		r, err = advise(cfg, file, bar)
	case cfg.tune:
		r, err = tune(cfg, file, bar)
	default:
		r, err = run(cfg, file, bar.tick)
	}
	bar.done()
	if err != nil {
		return complain(stderr, err)
	}
	for _, text := range r.described {
		fmt.Fprintln(stderr, "mismatch:", text)
	}
	if cfg.json {
		err = r.writeJSON(stdout)
	} else {
		err = r.writeTable(stdout, &cfg)
	}
	if err != nil {
		return complain(stderr, err)
	}
	return r.exitCode()
}

// exitCode reports whether all clients were right all along.
func (r *report) exitCode() int {
	if r.Converged && r.Mismatches == 0 {
		return exitOK
	}
	return exitWrong
}

// complain prints an error as one sentence.
func complain(stderr io.Writer, err error) int {
	fmt.Fprintln(stderr, "trace:", err)
	return exitUsage
}

package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"os"

	"github.com/arche-replicate/arche-replicate/replication/loop"
)

// Exit codes.
const (
	exitOK     = 0
	exitFailed = 1
	exitUsage  = 2
)

func main() {
	os.Exit(run(loop.Interrupt(), os.Args[1:], os.Stdout, os.Stderr))
}

// run runs the program. When ctx is done it ends early, but properly.
func run(ctx context.Context, args []string, stdout, stderr io.Writer) int {
	c, err := parseFlags(args, stdout)
	if errors.Is(err, flag.ErrHelp) {
		return exitOK
	}
	if err != nil {
		return complain(stderr, exitUsage, fmt.Errorf("%w; -help lists the flags", err))
	}
	s := &screen{}
	switch {
	case c.headless:
	case c.json:
		s = newScreen(stderr)
	default:
		s = newScreen(stdout)
	}
	defer s.leave() // also on a panic
	// The terminal is restored immediately, whatever else takes time.
	defer context.AfterFunc(ctx, s.leave)()

	result, err := play(ctx, &c, s)
	s.done()
	if err != nil {
		return complain(stderr, exitFailed, err)
	}
	if c.json {
		err = result.writeJSON(stdout)
	} else {
		err = result.writeText(stdout, columnsOf(stdout))
	}
	if err != nil {
		return complain(stderr, exitFailed, err)
	}
	if !result.ok() {
		return exitFailed
	}
	return exitOK
}

// result is what is printed at the end.
type result interface {
	writeText(out io.Writer, columns int) error
	writeJSON(out io.Writer) error
	ok() bool
}

// play does what the flags ask for.
func play(ctx context.Context, c *config, s *screen) (result, error) {
	switch {
	case c.replay != "":
		return runReplay(ctx, c, s)
	case c.connect != "":
		return runClients(ctx, c, s)
	default:
		return runMatch(ctx, c, s)
	}
}

// complain prints an error and returns the exit code.
func complain(stderr io.Writer, code int, err error) int {
	_, _ = fmt.Fprintln(stderr, wrap(fmt.Sprintf("arena: %v", err), columnsOf(stderr)))
	return code
}

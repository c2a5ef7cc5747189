package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"os"
	"os/signal"
)

// Exit codes.
const (
	exitOK     = 0
	exitFailed = 1
	exitUsage  = 2
)

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt)
	context.AfterFunc(ctx, stop) // a second Ctrl-C does not wait for the end
	os.Exit(run(ctx, os.Args[1:], os.Stdout, os.Stderr))
}

// run is the program. When ctx is done it ends early, but in order.
func run(ctx context.Context, args []string, stdout, stderr io.Writer) int {
	c, err := parseFlags(args, stdout)
	if errors.Is(err, flag.ErrHelp) {
		return exitOK
	}
	if err != nil {
		return complain(stderr, exitUsage, fmt.Errorf("%w; -help tells what there is", err))
	}
	s := &screen{}
	switch {
	case c.headless:
	case c.json:
		s = newScreen(stderr)
	default:
		s = newScreen(stdout)
	}

	play := runLocal
	switch {
	case c.serve != "":
		play = runServer
	case c.connect != "":
		play = runClients
	}
	result, err := play(ctx, &c, s)
	s.done()
	if err != nil {
		return complain(stderr, exitFailed, err)
	}
	write := result.writeTable
	if c.json {
		write = result.writeJSON
	}
	if err := write(stdout); err != nil {
		return complain(stderr, exitFailed, err)
	}
	if !result.ok() {
		return exitFailed
	}
	return exitOK
}

// complain says what is wrong, if anybody listens, and returns the exit code.
func complain(stderr io.Writer, code int, err error) int {
	_, _ = fmt.Fprintf(stderr, "arena: %v\n", err)
	return code
}

//go:build !js

package main

import (
	"context"
	"fmt"
	"net/http"

	"github.com/arche-replicate/arche-replicate/replication/inspect"
)

// page serves the recording to browsers, which play it, until ctx is done.
func (r *replay) page(ctx context.Context, c *config, s *screen) error {
	if err := findClient(ctx); err != nil {
		return fmt.Errorf("%w\nwith -http= it is played here", err)
	}
	site, err := newSite(c, r.name)
	if err != nil {
		return err
	}
	site.mux.Handle("GET /recording", fresh(http.HandlerFunc(func(w http.ResponseWriter, request *http.Request) {
		http.ServeFile(w, request, r.path)
	})))
	script := inspect.Client(r.player.Client())
	defer script.Close()
	site.mux.Handle("GET /debug/replication/inspect.js", script)
	end := site.serve(ctx, c, s, fmt.Sprintf("%s, %s", r.name, clock(r.player.Duration())))
	defer end()
	for {
		select {
		case text := <-site.trouble:
			s.printLine(text)
		case <-ctx.Done():
			return nil
		}
	}
}

//go:build !js

package main

import (
	"context"
	"embed"
	"errors"
	"fmt"
	"io/fs"
	"net"
	"net/http"
	"net/netip"
	"os"
	"os/exec"
	"runtime"
	"strconv"
	"strings"
	"time"
)

//go:embed page
var pageFiles embed.FS

// site serves a page: its files, and its client, which it compiles.
type site struct {
	address  string // a URL
	mux      *http.ServeMux
	listener net.Listener
	build    *build
	trouble  chan string // for the person at the terminal
}

// newSite listens. The page shows a recording if there is one with a name.
func newSite(c *config, recording string) (*site, error) {
	listener, err := listenNear(c.http, !c.httpGiven)
	if err != nil {
		return nil, fmt.Errorf("no page can be served: %w", err)
	}
	files, err := fs.Sub(pageFiles, "page")
	if err != nil {
		return nil, err
	}
	w := &site{
		address: urlOf(listener.Addr()), mux: http.NewServeMux(), listener: listener, build: newBuild(recording),
		trouble: make(chan string, 2),
	}
	w.mux.Handle("/", fresh(http.FileServerFS(files)))
	w.mux.HandleFunc("GET /status", w.build.serveStatus)
	w.mux.HandleFunc("GET /client.wasm", w.build.serveWasm)
	w.mux.HandleFunc("GET /wasm_exec.js", w.build.serveLoader)
	return w, nil
}

// serve serves what was added to the mux, prints what and where, and compiles the client. The function that it returns
// ends that.
func (w *site) serve(ctx context.Context, c *config, s *screen, what string) (end func()) {
	server := &http.Server{Handler: w.mux, ReadHeaderTimeout: 10 * time.Second}
	go func() {
		if err := server.Serve(w.listener); !errors.Is(err, http.ErrServerClosed) {
			w.trouble <- fmt.Sprintf("arena: the page is no longer served: %v", err)
		}
	}()
	s.printLine(fmt.Sprintf("arena: %s; play at %s", what, w.address))
	ctx, cancel := context.WithCancel(ctx)
	done := make(chan struct{})
	go func() {
		defer close(done)
		if err := w.build.run(ctx); err != nil && ctx.Err() == nil {
			w.trouble <- fmt.Sprintf("arena: %v", err)
		}
	}()
	if c.open {
		openBrowser(ctx, w.address)
	}
	if c.onListen != nil {
		c.onListen(w.address)
	}
	return func() {
		cancel()
		<-done
		_ = server.Close()
	}
}

// listenNear listens at an address, or at one of the next ports if that is taken and others may be.
func listenNear(address string, others bool) (net.Listener, error) {
	host, port, err := net.SplitHostPort(address)
	if err != nil {
		return nil, err
	}
	listener, err := net.Listen("tcp", address)
	first, _ := strconv.Atoi(port)
	for i := 1; err != nil && others && i <= 20; i++ {
		listener, err = net.Listen("tcp", net.JoinHostPort(host, strconv.Itoa(first+i)))
	}
	return listener, err
}

// urlOf returns the address of the page for this machine.
func urlOf(a net.Addr) string {
	at := a.(*net.TCPAddr).AddrPort()
	if at.Addr().IsUnspecified() {
		at = netip.AddrPortFrom(netip.AddrFrom4([4]byte{127, 0, 0, 1}), at.Port())
	}
	return "http://" + at.String() + "/"
}

// openBrowser shows the page where there is a display. It may fail, as the address is printed.
func openBrowser(ctx context.Context, url string) {
	var command []string
	switch {
	case runtime.GOOS == "darwin":
		command = []string{"open", url}
	case runtime.GOOS == "windows":
		command = []string{"rundll32", "url.dll,FileProtocolHandler", url}
	case os.Getenv("DISPLAY") != "" || os.Getenv("WAYLAND_DISPLAY") != "":
		command = []string{"xdg-open", url}
	default:
		return
	}
	go func() { _ = exec.CommandContext(ctx, command[0], command[1:]...).Run() }()
}

// fresh makes browsers ask whether a file has changed.
func fresh(h http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("Cache-Control", "no-cache")
		h.ServeHTTP(w, r)
	})
}

var errForwarded = errors.New("a proxy has passed the request on")

// local refuses requests from other machines, also through a proxy here, and of pages that reach this one by a name of
// theirs.
func local(h http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		from, err := netip.ParseAddrPort(r.RemoteAddr)
		host := r.Host
		if name, _, err := net.SplitHostPort(host); err == nil {
			host = name
		}
		_, notIP := netip.ParseAddr(strings.Trim(host, "[]"))
		for _, by := range []string{"Forwarded", "X-Forwarded-For", "Via"} { // a proxy here stands for anybody
			if r.Header.Get(by) != "" {
				err = errForwarded
			}
		}
		if err != nil || !from.Addr().Unmap().IsLoopback() || host != "localhost" && notIP != nil {
			http.Error(w, "only pages of this machine may do this: open the arena at 127.0.0.1", http.StatusForbidden)
			return
		}
		w.Header().Set("Cache-Control", "no-store")
		h.ServeHTTP(w, r)
	})
}

//go:build !js

package inspect

import (
	_ "embed"
	"net/http"
	"strconv"
	"strings"
)

//go:embed page.html
var page string

//go:embed page.js
var pageScript string

//go:embed inspect.js
var script string

const kindOfScript = "text/javascript; charset=utf-8"

// ServeHTTP serves the page and what belongs to it, see the package. It looks at the last part of the path only, so the
// inspector can be mounted at any path that ends in "/", with or without [http.StripPrefix].
func (s *Inspector) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	h := w.Header()
	h.Set("Cache-Control", "no-store")
	h.Set("X-Content-Type-Options", "nosniff")
	if r.Method != http.MethodGet && r.Method != http.MethodHead {
		h.Set("Allow", "GET, HEAD")
		http.Error(w, "inspect: nothing can be changed here: use GET", http.StatusMethodNotAllowed)
		return
	}
	send := func(kind, body string) {
		h.Set("Content-Type", kind)
		h.Set("Content-Length", strconv.Itoa(len(body)))
		if r.Method == http.MethodGet {
			_, _ = w.Write([]byte(body)) // whoever does not want it any more need not get it
		}
	}
	switch r.URL.Path[strings.LastIndexByte(r.URL.Path, '/')+1:] {
	case "":
		h.Set("Content-Security-Policy", "default-src 'none'; script-src 'self'; connect-src 'self'; "+
			"style-src 'unsafe-inline'; img-src data:; base-uri 'none'; form-action 'none'; frame-ancestors 'none'")
		send("text/html; charset=utf-8", page)
	case "page.js":
		send(kindOfScript, pageScript)
	case "inspect.js":
		send(kindOfScript, script)
	case "metrics":
		send("text/plain; version=0.0.4; charset=utf-8", s.metrics())
	case "json":
		since, peer, ok := query(r)
		if !ok {
			http.Error(w, "inspect: since and peer are numbers: json?since=0&peer=3", http.StatusBadRequest)
			return
		}
		send("application/json", string(s.AppendJSON(nil, since, peer)))
	default:
		http.NotFound(w, r)
	}
}

// query returns the numbers of a request for JSON.
func query(r *http.Request) (since int64, peer int, ok bool) {
	q, peer := r.URL.Query(), -1
	var err error
	if v := q.Get("since"); v != "" {
		if since, err = strconv.ParseInt(v, 10, 64); err != nil {
			return 0, 0, false
		}
	}
	if v := q.Get("peer"); v != "" {
		if peer, err = strconv.Atoi(v); err != nil {
			return 0, 0, false
		}
	}
	return since, peer, true
}

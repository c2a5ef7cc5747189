//go:build !js

package inspect_test

import (
	"fmt"
	"net/http"
	"net/http/httptest"

	"github.com/mlange-42/arche/ecs"

	"github.com/arche-replicate/arche-replicate/replication"
	"github.com/arche-replicate/arche-replicate/replication/inspect"
)

func Example() {
	world := ecs.NewWorld()
	server := replication.NewServer(&world, replication.NewSchema())

	mux := http.NewServeMux() // serve it where only you get, such as at localhost:8081
	mux.Handle("/debug/replication/", inspect.Server(server))

	r := httptest.NewRecorder()
	mux.ServeHTTP(r, httptest.NewRequest("GET", "/debug/replication/", nil))
	fmt.Println(r.Code, r.Header().Get("Content-Type"))
	// Output: 200 text/html; charset=utf-8
}

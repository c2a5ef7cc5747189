// Package inspect shows what replication does in a running game: bandwidth by component and field, packet sizes, round
// trips, loss, baselines, what was not sent and why, and how long the work takes. It is a page for people, JSON for
// programs, and metrics in Prometheus' text format.
//
//	http.Handle("/debug/replication/", inspect.Server(server))
//	go func() { log.Println(http.ListenAndServe("localhost:8081", nil)) }()
//
// [Server] and [Client] attach an [Inspector]. Four times a second, at the end of Replicate or Frame, it reads the
// counters, and keeps the last 60 seconds. It never waits for those who look: a reader that is in its way postpones the
// sample to the next tick. Without readers it allocates nothing.
//
// Under the path where it is mounted, an Inspector serves
//
//	./            a page that draws everything
//	json          what the page draws, see [Inspector.AppendJSON]
//	metrics       counters in Prometheus' text format
//	inspect.js    a module that draws the same in a page of the game's
//
// Mount it where only operators get: it shows the addresses of clients. It has no authentication, and changes nothing.
package inspect

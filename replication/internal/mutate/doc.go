// Command mutate checks the tests: it plants faults of one line each into the library, one at a
// time, and runs the short tests of the package that the fault is in, then those of replication and
// of what is named with the fault. A fault that no test notices has survived, and shows what is not
// tested.
//
//	go run ./replication/internal/mutate            plant all faults: half an hour on two cores
//	go run ./replication/internal/mutate -run acks  those of which the name, the area or the package matches
//	go run ./replication/internal/mutate -list      check that all can be planted, without running a test
//
// Nothing in the tree changes: the compiler is given the changed file in place of the real one (go
// test -overlay).
//
// The faults stand in mutants.txt:
//
//	acks ackstate Tracker.Resolve
//	- if int32(newest-p.Recent) > 0 {
//	+ if int32(newest-p.Recent) >= 0 {
//
// that is an area, a package (its directory, below replication/internal where it is a bare name)
// and a function, or a type, in which the line stands once; the line, without its indentation; and
// the fault. A fourth word on the first line names more tests: a package, and a pattern after a
// colon. A fault that changes nothing one could observe has a line more, with the reason:
//
//	= both branches do the same for equal numbers
package main

// Package archcheck tests the architecture of package replication: which package may import which,
// and how large a struct, a type and a package may be. It has no other code.
//
// The table is in table_test.go. It is the only copy: CONTRIBUTING.md shows what the test prints,
// and .golangci.yml leaves imports within the module to it. Code that breaks a rule is listed by
// name in exceptions_test.go, with ceilings that may only fall.
package archcheck

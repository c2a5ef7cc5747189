// Package benchmarks measures arche-replicate against other libraries. It is a
// module of its own, so that those never become dependencies of the library.
package benchmarks

//go:build !nounsafe

package replication

const safeKernels = false

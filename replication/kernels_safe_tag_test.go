//go:build nounsafe

package replication

const safeKernels = true

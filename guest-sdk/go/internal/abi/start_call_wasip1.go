//go:build !cofferdam_snapshot

package abi

// resume does nothing: without a snapshot, the whole program starts in each call.
func resume() {}

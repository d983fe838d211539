//go:build cofferdam_snapshot

// The compiler accepts functions without a body, such as those of other packages in
// start_wasip1.go, only beside a file in assembly.

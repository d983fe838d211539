package cofferdam

import "runtime/debug"

// memoryBytesSoft is what the collector works harder from. Left to itself it lets the heap grow to twice of what is in use, and
// a call with 64 MiB, which is what hosts give by default, ends as MemoryLimit with 30 MiB in use. A tool that is given more and
// keeps more than this sets a limit of its own in an init function, with [debug.SetMemoryLimit]; until then it collects more often
// than it has to, which costs it at most half of its time.
const memoryBytesSoft = 52 << 20

func init() {
	debug.SetMemoryLimit(memoryBytesSoft)
}

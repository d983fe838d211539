package cofferdam

import "runtime/debug"

// memoryBytesSoft is the heap size from which the garbage collector works harder. By default the
// heap may grow to twice the size that is in use, so a call with 64 MiB, the default of hosts,
// would end as MemoryLimit with 30 MiB in use. A tool with a larger limit that uses more than this
// should set its own limit in an init function, with [debug.SetMemoryLimit]. Otherwise it collects
// more often than necessary, which costs at most half of its time.
const memoryBytesSoft = 52 << 20

func init() {
	debug.SetMemoryLimit(memoryBytesSoft)
}

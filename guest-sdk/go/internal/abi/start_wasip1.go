//go:build cofferdam_snapshot

package abi

import (
	"runtime"
	"strings"
	"syscall"
	"unsafe"
)

// `cofferdam build` runs the program up to the end of prepare, and the component begins with the
// memory that this leaves. The state below belongs to a call and not to the build, so each call
// renews it. The names of the runtime and of package syscall are those of the versions of Go for
// which `cofferdam build` sets the build tag.

//go:linkname randomGlobal runtime.globalRand
var randomGlobal struct {
	lock  uintptr
	seed  [32]byte
	state struct {
		buffer  [32]uint64
		seed    [4]uint64
		i, n, c uint32
	}
	isSeeded bool
}

//go:linkname seedGlobal runtime.randinit
func seedGlobal()

//go:linkname seedThread runtime.mrandinit
func seedThread(thread unsafe.Pointer)

// thread is the only thread of a program in WebAssembly. Its size is that in the runtime.
//
//go:linkname thread runtime.m0
var thread [1]byte

// openMounts adds the directories of WASI to those of package os.
//
//go:linkname openMounts syscall.init.1
func openMounts()

//go:wasmimport wasi_snapshot_preview1 environ_sizes_get
func importEnvironSizes(count, size unsafe.Pointer) uint32

//go:wasmimport wasi_snapshot_preview1 environ_get
func importEnviron(addresses, buffer unsafe.Pointer) uint32

// isResumed is false in the snapshot.
var isResumed bool

// prepare ends what runs when the program is built.
//
//go:wasmexport cofferdam_prepare
func prepare() {
	if !randomGlobal.isSeeded {
		panic("the random state of this version of Go has another layout")
	}
	for _, prepare := range Preparations {
		prepare()
	}
	// Starts the goroutines of the collector, and leaves no garbage to calls.
	runtime.GC()
}

// resume renews the state of a call. It runs before anything else in an export.
func resume() {
	if isResumed {
		return
	}
	isResumed = true
	randomGlobal.isSeeded = false
	seedGlobal()
	seedThread(unsafe.Pointer(&thread))
	setEnvironment()
	openMounts()
}

// setEnvironment sets the variables that the host passes, as they would be set at the start of the
// program: those that an init function has set stay.
func setEnvironment() {
	var count, size uint32
	if importEnvironSizes(unsafe.Pointer(&count), unsafe.Pointer(&size)) != 0 || count == 0 {
		return
	}
	addresses := make([]uint32, count)
	buffer := make([]byte, size)
	if importEnviron(unsafe.Pointer(&addresses[0]), unsafe.Pointer(&buffer[0])) != 0 {
		return
	}
	start := addressOf(unsafe.Pointer(&buffer[0]))
	for _, address := range addresses {
		// Each is `NAME=value` with a zero byte at the end.
		variable, _, _ := strings.Cut(string(buffer[address-start:]), "\x00")
		name, value, _ := strings.Cut(variable, "=")
		if _, isSet := syscall.Getenv(name); !isSet {
			_ = syscall.Setenv(name, value)
		}
	}
}

package cofferdam

import (
	"context"
	"time"

	"cofferdam/internal/abi"
)

// Call is the current call.
//
// It is a [context.Context] that ends when the host ends the call, for libraries that need one.
// Done is nil, because nothing runs in a component while a function waits: long loops should check
// [Call.Err] or [Call.Cancelled] regularly.
type Call struct{}

var _ context.Context = (*Call)(nil)

// ID returns the id of the call, unique within its session. It is empty in a test.
func (*Call) ID() string {
	return abi.CallID()
}

// Session returns the session of the call. It is empty if there is none.
func (*Call) Session() string {
	return abi.CallSession()
}

// TimeLeft returns the time until the host stops the call with a timeout.
func (*Call) TimeLeft() time.Duration {
	left := abi.TimeLeft()
	if left > uint64(1<<63-1)/uint64(time.Millisecond) {
		return 1<<63 - 1
	}
	return time.Duration(left) * time.Millisecond
}

// Cancelled reports whether the caller has canceled the call. The host soon stops a canceled call
// by itself; a tool that checks can stop sooner.
func (*Call) Cancelled() bool {
	return abi.CallCancelled()
}

// Progress reports progress in a unit that the tool chooses. Done should not decrease; a total of 0
// is unknown, and the message may be empty. The host may drop reports that come too fast.
func (*Call) Progress(done, total float64, message string) {
	abi.Progress(done, total, message)
}

// Deadline returns the time at which the host stops the call.
func (call *Call) Deadline() (time.Time, bool) {
	left := call.TimeLeft()
	if left == 1<<63-1 {
		return time.Time{}, false
	}
	return time.Now().Add(left), true
}

// Done returns nil. See [Call].
func (*Call) Done() <-chan struct{} {
	return nil
}

// Err returns [context.Canceled] if the caller has canceled the call, [context.DeadlineExceeded] if
// no time is left, and nil otherwise.
func (call *Call) Err() error {
	switch {
	case call.Cancelled():
		return context.Canceled
	case abi.TimeLeft() == 0:
		return context.DeadlineExceeded
	default:
		return nil
	}
}

// Value returns nil.
func (*Call) Value(any) any {
	return nil
}

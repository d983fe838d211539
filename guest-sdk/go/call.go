package cofferdam

import (
	"context"
	"time"

	"cofferdam/internal/abi"
)

// Call is the call that is being served.
//
// It is a [context.Context] that ends when the host ends the call, for libraries that want one. Done is nil, because nothing
// runs in a component while a function waits: long loops ask [Call.Err] now and then, or [Call.Cancelled].
type Call struct{}

var _ context.Context = (*Call)(nil)

// ID is unique within its session. It is empty in a test.
func (*Call) ID() string {
	return abi.CallID()
}

// Session is the session that the call belongs to; empty if it belongs to none.
func (*Call) Session() string {
	return abi.CallSession()
}

// TimeLeft is how long the tool may go on before the host ends the call as timed out.
func (*Call) TimeLeft() time.Duration {
	left := abi.TimeLeft()
	if left > uint64(1<<63-1)/uint64(time.Millisecond) {
		return 1<<63 - 1
	}
	return time.Duration(left) * time.Millisecond
}

// Cancelled says whether the caller has given up. The host stops a cancelled call by itself, soon; a tool that asks can stop
// sooner.
func (*Call) Cancelled() bool {
	return abi.CallCancelled()
}

// Progress says how far the call has come, in a unit of the tool's own. Done should not fall; a total of 0 is unknown, and an
// empty message is none. The host may leave reports out when they come too fast.
func (*Call) Progress(done, total float64, message string) {
	abi.Progress(done, total, message)
}

// Deadline is when the host ends the call.
func (call *Call) Deadline() (time.Time, bool) {
	left := call.TimeLeft()
	if left == 1<<63-1 {
		return time.Time{}, false
	}
	return time.Now().Add(left), true
}

// Done is nil. See [Call].
func (*Call) Done() <-chan struct{} {
	return nil
}

// Err is [context.Canceled] when the caller has given up, [context.DeadlineExceeded] when there is no time left, and nil
// otherwise.
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

// Value is nil.
func (*Call) Value(any) any {
	return nil
}

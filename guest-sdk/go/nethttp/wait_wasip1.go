package nethttp

import (
	"context"
	"runtime"
	"slices"
	"sync"
	"time"

	"cofferdam/internal/abi"
)

// pauseMax is the longest time for which all goroutines are blocked while requests wait, and by
// which a timer can be late.
const pauseMax = 10 * time.Millisecond

// waiter is a goroutine that waits for the host.
type waiter struct {
	pollable abi.Pollable
	ready    chan struct{}
}

// waiters contains all of them. While there is one, a goroutine polls for all: a component has one
// thread, and a poll blocks it.
var waiters struct {
	sync.Mutex
	all     []*waiter
	polling bool
}

// wait blocks the goroutine until the pollable is ready, or the context is done, and drops the
// pollable.
func wait(ctx context.Context, pollable abi.Pollable) error {
	it := &waiter{pollable, make(chan struct{})}
	waiters.Lock()
	waiters.all = append(waiters.all, it)
	if !waiters.polling {
		waiters.polling = true
		go poll()
	}
	waiters.Unlock()
	var err error
	select {
	case <-it.ready:
	case <-ctx.Done():
		err = context.Cause(ctx)
	}
	waiters.Lock()
	defer waiters.Unlock()
	if at := slices.Index(waiters.all, it); at >= 0 {
		waiters.all = slices.Delete(waiters.all, at, at+1)
	}
	pollable.Drop()
	return err
}

// poll runs until there are no waiters.
func poll() {
	pause := time.Millisecond
	for {
		// Lets the other goroutines run until they wait too, and timers expire. The second time is for
		// those that the first ones have woken.
		runtime.Gosched()
		runtime.Gosched()
		ready, goesOn := pollOnce(pause)
		switch {
		case !goesOn:
			return
		case ready:
			pause = time.Millisecond
		default:
			pause = min(2*pause, pauseMax)
		}
	}
}

// pollOnce polls for all waiters and wakes those whose pollable is ready.
func pollOnce(pause time.Duration) (ready, goesOn bool) {
	waiters.Lock()
	defer waiters.Unlock()
	if len(waiters.all) == 0 {
		waiters.polling = false
		return false, false
	}
	pollables := make([]abi.Pollable, 0, len(waiters.all)+1)
	for _, it := range waiters.all {
		pollables = append(pollables, it.pollable)
	}
	timer := abi.After(pause)
	defer timer.Drop()
	woken := abi.Poll(append(pollables, timer))
	var rest []*waiter
	for i, it := range waiters.all {
		if slices.Contains(woken, uint32(i)) {
			close(it.ready)
			ready = true
		} else {
			rest = append(rest, it)
		}
	}
	waiters.all = rest
	return ready, true
}

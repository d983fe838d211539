package cofferdam

import (
	"errors"
	"fmt"

	"cofferdam/internal/abi"
)

// Failure is an error with a suggestion and other details for the model and the host. Any other
// error that a tool returns becomes a failure with the error's text; if it wraps a Failure, the
// details of that are added.
//
//	return nil, &cofferdam.Failure{Message: "`text` is empty", Suggestion: "pass at least one word"}
//
// Write for a model: what was expected, what was found, and what to do instead. Do not include
// anything that a model should not see.
type Failure struct {
	// Message is the reason.
	Message string
	// Suggestion is advice for the model's next attempt; it may be empty.
	Suggestion string
	// Retry says whether a retry may help. The host may retry the call by itself. The model does
	// not see it.
	Retry Retry
	// Value is an error value that the model sees instead of message and suggestion. It is encoded
	// as JSON; a value without a JSON form is dropped, so that the model sees the message.
	Value any
}

// Retry says whether a retry may help.
type Retry uint8

const (
	// RetryUnknown is the default.
	RetryUnknown Retry = iota
	// RetryMayHelp is for temporary conditions.
	RetryMayHelp
	// RetryCannotHelp is for conditions that last until something is changed.
	RetryCannotHelp
)

// Failf makes a failure whose message is formatted like [fmt.Sprintf].
func Failf(format string, arguments ...any) *Failure {
	return &Failure{Message: fmt.Sprintf(format, arguments...)}
}

// Suggest sets a suggestion formatted like [fmt.Sprintf], and returns the failure.
func (failure *Failure) Suggest(format string, arguments ...any) *Failure {
	failure.Suggestion = fmt.Sprintf(format, arguments...)
	return failure
}

// Error returns the message.
func (failure *Failure) Error() string {
	return failure.Message
}

// failureOf converts an error for the host.
func failureOf(err error) *abi.Failure {
	told := &abi.Failure{Message: err.Error()}
	var failure *Failure
	if !errors.As(err, &failure) {
		return told
	}
	told.Suggestion = failure.Suggestion
	switch failure.Retry {
	case RetryMayHelp:
		told.Transient = pointer(true)
	case RetryCannotHelp:
		told.Transient = pointer(false)
	}
	if failure.Value != nil {
		if value, err := marshal(failure.Value); err == nil {
			told.Value = value
		}
	}
	return told
}

func pointer[T any](value T) *T {
	return &value
}

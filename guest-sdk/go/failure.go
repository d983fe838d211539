package cofferdam

import (
	"errors"
	"fmt"

	"cofferdam/internal/abi"
)

// Failure is an error with more to say than its text. Any other error that a tool returns is a failure with the error's text;
// a Failure that it wraps still adds the rest.
//
//	return nil, &cofferdam.Failure{Message: "`text` is empty", Suggestion: "pass at least one word"}
//
// Write for a model: what was expected, what was found, and what to do instead. Do not put anything into it that a model
// should not see.
type Failure struct {
	// Message says what went wrong.
	Message string
	// Suggestion is what the model could do instead, if there is something.
	Suggestion string
	// Retry says whether trying again may help. The host may do so by itself. The model does not see it.
	Retry Retry
	// Value is an error value of the tool's own that the model sees instead of message and suggestion. It is written as JSON;
	// one that cannot be is left out, so that the message is still there.
	Value any
}

// Retry says whether trying again may help.
type Retry uint8

const (
	// RetryUnknown says nothing.
	RetryUnknown Retry = iota
	// RetryMayHelp is for what goes away by itself.
	RetryMayHelp
	// RetryCannotHelp is for what stays as it is until somebody changes something.
	RetryCannotHelp
)

// Failf makes a failure with a message in the way of [fmt.Sprintf].
func Failf(format string, arguments ...any) *Failure {
	return &Failure{Message: fmt.Sprintf(format, arguments...)}
}

// Suggest adds a suggestion in the way of [fmt.Sprintf], and gives the failure back.
func (failure *Failure) Suggest(format string, arguments ...any) *Failure {
	failure.Suggestion = fmt.Sprintf(format, arguments...)
	return failure
}

// Error is the message.
func (failure *Failure) Error() string {
	return failure.Message
}

// failureOf is what the host gets for an error.
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

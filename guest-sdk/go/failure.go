package cofferdam

import (
	"errors"
	"fmt"

	"cofferdam/internal/abi"
	"cofferdam/internal/shown"
)

// Failure is an error for the model, with a suggestion and other details for it and the host. If a
// tool returns an error that wraps one, the model sees the text of the whole error. If the failure
// is one of several errors, as with [errors.Join], the model sees only the text of the failure. The
// text of other errors is for the operator: the model sees only the type of the error. Errors of the
// packages of the SDK, such as a missing file of package files or a request without a grant, are for
// the model too.
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
	var failure *Failure
	if !errors.As(err, &failure) {
		return &abi.Failure{Message: messageOf(err)}
	}
	told := &abi.Failure{Message: textOf(err, failure)}
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

// messageOf returns what the model sees of an error that wraps no failure.
func messageOf(err error) string {
	var known shown.Error
	if errors.As(err, &known) && known.ForModel() {
		return textOf(err, known)
	}
	return abi.Unexpected(typeName(err), err.Error())
}

// textOf returns what the model sees of an error that contains `meant`, which is for the model: the
// text of the whole if each error wraps one other. Of several errors, the others need not be for the
// model, so it sees only the text of `meant`.
func textOf[E error](err error, meant E) string {
	for wrapped := err; wrapped != nil; wrapped = errors.Unwrap(wrapped) {
		if _, is := wrapped.(E); is {
			return err.Error()
		}
	}
	return meant.Error()
}

// typeName returns the name of the error's type. Wrappers of package fmt say nothing about an error.
func typeName(err error) string {
	for {
		name := fmt.Sprintf("%T", err)
		wrapped := errors.Unwrap(err)
		if name != "*fmt.wrapError" || wrapped == nil {
			return name
		}
		err = wrapped
	}
}

func pointer[T any](value T) *T {
	return &value
}

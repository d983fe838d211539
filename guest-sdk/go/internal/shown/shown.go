// Package shown marks the errors whose text is for the model if a tool returns them. The text of
// any other error is for the operator.
package shown

// Error is an error that knows whether its text is for the model.
type Error interface {
	error
	// ForModel reports whether the model sees the text if a tool returns the error.
	ForModel() bool
}

type message struct {
	text string
}

// New returns an error with a text for the model. Each call returns a distinct error.
func New(text string) error {
	return &message{text}
}

func (err *message) Error() string  { return err.text }
func (err *message) ForModel() bool { return true }

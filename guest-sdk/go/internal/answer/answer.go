// Package answer converts results of tools to the types of the SDK, for the toolbox and for tests.
package answer

import (
	"bytes"
	"encoding/json"

	"cofferdam"
	"cofferdam/internal/abi"
)

// Contents converts the items of a result.
func Contents(contents []abi.Content) []cofferdam.Content {
	items := make([]cofferdam.Content, len(contents))
	for i, content := range contents {
		items[i] = item(content)
	}
	return items
}

func item(content abi.Content) cofferdam.Content {
	switch content.Kind {
	case abi.Text:
		return cofferdam.Text(content.Text)
	case abi.JSON:
		return cofferdam.JSON{Value: json.RawMessage(content.Text)}
	case abi.Blob:
		return cofferdam.Blob{MediaType: content.MediaType, Data: content.Data}
	case abi.Link:
		return cofferdam.Link{URI: content.URI, Name: content.Name, MediaType: content.MediaType}
	default:
		return cofferdam.Resource{
			URI: content.URI, MediaType: content.MediaType, Text: content.Text, Data: content.Data,
		}
	}
}

// Failure converts a failure of a tool.
func Failure(told *abi.Failure) *cofferdam.Failure {
	failure := &cofferdam.Failure{Message: told.Message, Suggestion: told.Suggestion}
	if told.Transient != nil {
		failure.Retry = cofferdam.RetryCannotHelp
		if *told.Transient {
			failure.Retry = cofferdam.RetryMayHelp
		}
	}
	if told.Value != "" {
		failure.Value = json.RawMessage(told.Value)
	}
	return failure
}

// Value returns a result as a model sees it: null for no items, the only item, or an array of
// several. A blob is shown as its media type and its length.
func Value(contents []abi.Content) (json.RawMessage, error) {
	switch len(contents) {
	case 0:
		return json.RawMessage("null"), nil
	case 1:
		return value(contents[0])
	}
	values := make([]json.RawMessage, len(contents))
	for i, content := range contents {
		var err error
		if values[i], err = value(content); err != nil {
			return nil, err
		}
	}
	return marshal(values)
}

func value(content abi.Content) (json.RawMessage, error) {
	switch content.Kind {
	case abi.Text:
		return marshal(content.Text)
	case abi.JSON:
		return json.RawMessage(content.Text), nil
	case abi.Blob:
		return marshal(blob{content.MediaType, len(content.Data)})
	case abi.Link:
		return marshal(link{content.URI, content.Name, content.MediaType})
	default:
		return marshal(resource{content.URI, content.MediaType, content.Text, len(content.Data)})
	}
}

type blob struct {
	MediaType string `json:"media_type"`
	Bytes     int    `json:"bytes"`
}

type link struct {
	URI       string `json:"uri"`
	Name      string `json:"name"`
	MediaType string `json:"media_type,omitempty"`
}

type resource struct {
	URI       string `json:"uri"`
	MediaType string `json:"media_type,omitempty"`
	Text      string `json:"text,omitempty"`
	Bytes     int    `json:"bytes,omitempty"`
}

func marshal(value any) (json.RawMessage, error) {
	var text bytes.Buffer
	encoder := json.NewEncoder(&text)
	encoder.SetEscapeHTML(false)
	if err := encoder.Encode(value); err != nil {
		return nil, err
	}
	return bytes.TrimSuffix(text.Bytes(), []byte("\n")), nil
}

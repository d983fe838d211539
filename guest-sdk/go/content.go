package cofferdam

import (
	"bytes"
	"encoding/json"
	"errors"

	"cofferdam/internal/abi"
)

// Content is one item of a result: [Text], [JSON], [Blob], [Resource] or [Link]. A tool that
// returns one, or a slice of them, determines exactly what the host gets; most tools return another
// value instead.
type Content interface {
	content() (abi.Content, error)
}

// Text is text for the model.
type Text string

// JSON is a value that is encoded as JSON.
type JSON struct {
	Value any
}

// Blob is bytes with a media type, such as an image or an archive.
type Blob struct {
	// MediaType is for example `image/png`.
	MediaType string
	Data      []byte
}

// Resource is a resource with its content: Data if that is not nil, otherwise Text.
type Resource struct {
	// URI is the address of the resource.
	URI string
	// MediaType is for example `text/markdown`; it may be empty.
	MediaType string
	Text      string
	Data      []byte
}

// Link is the address of a resource that can be read separately.
type Link struct {
	URI string
	// Name is the display name.
	Name string
	// MediaType is for example `text/csv`; it may be empty.
	MediaType string
}

func (it Text) content() (abi.Content, error) {
	return abi.Content{Kind: abi.Text, Text: string(it)}, nil
}

func (it JSON) content() (abi.Content, error) {
	text, err := marshal(it.Value)
	return abi.Content{Kind: abi.JSON, Text: text}, err
}

func (it Blob) content() (abi.Content, error) {
	return abi.Content{Kind: abi.Blob, MediaType: it.MediaType, Data: it.Data}, nil
}

func (it Resource) content() (abi.Content, error) {
	kind := abi.ResourceText
	if it.Data != nil {
		kind = abi.ResourceBlob
	}
	return abi.Content{Kind: kind, URI: it.URI, MediaType: it.MediaType, Text: it.Text, Data: it.Data}, nil
}

func (it Link) content() (abi.Content, error) {
	return abi.Content{Kind: abi.Link, URI: it.URI, Name: it.Name, MediaType: it.MediaType}, nil
}

// contentsOf converts the result of a function for the host.
func contentsOf(output any) ([]abi.Content, error) {
	switch output := output.(type) {
	case None:
		return nil, nil
	case string:
		return contentsOf(Text(output))
	case Content:
		content, err := output.content()
		return []abi.Content{content}, err
	case []Content:
		contents := make([]abi.Content, 0, len(output))
		for _, item := range output {
			if item == nil {
				return nil, errors.New("a result has an item that is nil")
			}
			content, err := item.content()
			if err != nil {
				return nil, err
			}
			contents = append(contents, content)
		}
		return contents, nil
	default:
		return contentsOf(JSON{Value: output})
	}
}

// marshal encodes JSON without the escapes for HTML (`\u003c`) of the standard library.
func marshal(value any) (string, error) {
	var text bytes.Buffer
	encoder := json.NewEncoder(&text)
	encoder.SetEscapeHTML(false)
	if err := encoder.Encode(value); err != nil {
		return "", err
	}
	return string(bytes.TrimSuffix(text.Bytes(), []byte("\n"))), nil
}

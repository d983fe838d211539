package main

import (
	"errors"
	"io"
	"net/http"
	"net/url"
	"strings"
	"sync"
	"time"

	"cofferdam"
	"cofferdam/nethttp"
)

type requesting struct {
	URL       string            `json:"url" description:"The URL."`
	Method    string            `json:"method" description:"The method." default:"GET"`
	Headers   map[string]string `json:"headers,omitempty" description:"Headers of the request."`
	Body      *string           `json:"body" description:"The text to send."`
	SendBytes int64             `json:"send_bytes" description:"How many bytes to send instead, in chunks." default:"0"`
	TimeoutMS int64             `json:"timeout_ms" description:"The timeout in milliseconds; 0 for none." default:"0"`
	Follow    bool              `json:"follow" description:"True to follow redirects." default:"true"`
	Count     int               `json:"count" description:"How many requests, one after the other." default:"1"`
	Parallel  int               `json:"parallel" description:"How many requests at once." default:"1"`
}

type responded struct {
	Status int     `json:"status"`
	URL    string  `json:"url"`
	Type   *string `json:"type"`
	Bytes  int     `json:"bytes"`
	Text   string  `json:"text"`
	OK     int     `json:"ok"`
}

// repeated is an endless body.
type repeated byte

func (it repeated) Read(part []byte) (int, error) {
	for i := range part {
		part[i] = byte(it)
	}
	return len(part), nil
}

func sendRequests(call *cofferdam.Call, in requesting) (*responded, error) {
	client := &http.Client{Timeout: time.Duration(in.TimeoutMS) * time.Millisecond}
	if !in.Follow {
		client.CheckRedirect = func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse }
	}
	result, ok := new(responded), 0
	for range in.Count {
		results := make([]*responded, in.Parallel)
		failures := make([]error, in.Parallel)
		var group sync.WaitGroup
		for i := range in.Parallel {
			group.Add(1)
			go func() {
				defer group.Done()
				results[i], failures[i] = sendRequest(call, client, in)
			}()
		}
		group.Wait()
		for i := range in.Parallel {
			if failures[i] != nil {
				return nil, failures[i]
			}
			if result = results[i]; result.Status < 400 {
				ok++
			}
		}
	}
	result.OK = ok
	return result, nil
}

func sendRequest(call *cofferdam.Call, client *http.Client, in requesting) (*responded, error) {
	request, err := http.NewRequestWithContext(call, in.Method, in.URL, in.body())
	if err != nil {
		return nil, cofferdam.Failf("%v", err)
	}
	for name, value := range in.Headers {
		request.Header.Set(name, value)
	}
	response, err := client.Do(request)
	if err != nil {
		return nil, failureOf(err)
	}
	defer response.Body.Close()
	content, err := io.ReadAll(response.Body)
	if err != nil {
		return nil, failureOf(err)
	}
	result := &responded{Status: response.StatusCode, URL: response.Request.URL.String(), Bytes: len(content)}
	if kind := response.Header.Get("Content-Type"); kind != "" {
		result.Type = &kind
	}
	if len(content) <= 2000 {
		result.Text = string(content)
	}
	return result, nil
}

func (in requesting) body() io.Reader {
	switch {
	case in.SendBytes > 0:
		return io.LimitReader(repeated('x'), in.SendBytes)
	case in.Body != nil:
		return strings.NewReader(*in.Body)
	default:
		return nil
	}
}

func failureOf(err error) error {
	var timeout interface{ Timeout() bool }
	if errors.As(err, &timeout) && timeout.Timeout() {
		return cofferdam.Failf("timeout")
	}
	var refused *nethttp.Error
	if errors.As(err, &refused) && refused.Reason == nethttp.Denied {
		return refused
	}
	var failed *url.Error
	if errors.As(err, &failed) {
		return cofferdam.Failf("%v", failed.Err)
	}
	return cofferdam.Failf("%v", err)
}

package nethttp

import (
	"compress/gzip"
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/textproto"
	"strconv"
	"strings"

	"cofferdam/internal/abi"
)

// partBytes is the size of a part of a body. The host does not accept more at once.
const partBytes = 64 << 10

// userAgent is that of net/http.
const userAgent = "Go-http-client/1.1"

// connectionHeaders belong to the connection, which is the host's. It refuses requests with them.
var connectionHeaders = map[string]bool{
	"Connection": true, "Host": true, "Http2-Settings": true, "Keep-Alive": true,
	"Proxy-Authenticate": true, "Proxy-Authorization": true, "Proxy-Connection": true, "Te": true,
	"Trailer": true, "Transfer-Encoding": true, "Upgrade": true,
	// Determined by the body.
	"Content-Length": true,
}

var errOtherTransport = errors.New(
	"nethttp: this http.Transport cannot send requests in a plugin; use http.DefaultTransport itself",
)

func init() {
	shared, is := http.DefaultTransport.(*http.Transport)
	if !is {
		// Another package has replaced it, and means to use it.
		return
	}
	// Code that expects the type, to clone it for example, still finds it.
	for _, scheme := range []string{"http", "https"} {
		shared.RegisterProtocol(scheme, transport{shared})
	}
	// Keeps net/http from setting up HTTP/2 of its own.
	shared.Protocols = new(http.Protocols)
	shared.Protocols.SetHTTP1(true)
	shared.DialContext = func(context.Context, string, string) (net.Conn, error) {
		return nil, errOtherTransport
	}
}

// transport sends requests through the host.
type transport struct {
	settings *http.Transport
}

// RoundTrip sends a request and waits for the head of its response.
func (t transport) RoundTrip(request *http.Request) (*http.Response, error) {
	if request.URL.Host == "" {
		closeBody(request)
		return nil, errors.New("http: no Host in request URL")
	}
	if cause := context.Cause(request.Context()); cause != nil {
		closeBody(request)
		return nil, cause
	}
	it := &exchange{scheme: request.URL.Scheme, host: request.URL.Host}
	it.ctx, it.cancel = context.WithCancelCause(request.Context())
	//lint:ignore SA1019 http.Client uses it for its timeout.
	if cancelled := request.Cancel; cancelled != nil {
		go func() {
			select {
			case <-cancelled:
				it.cancel(errCancelled)
			case <-it.ctx.Done():
			}
		}()
	}
	response, err := t.send(it, request)
	if err != nil {
		it.release()
		return nil, err
	}
	return response, nil
}

var errCancelled = errors.New("net/http: request canceled")

func (t transport) send(it *exchange, request *http.Request) (*http.Response, error) {
	length := outgoingLength(request)
	header, asksGzip := t.header(request, length)
	future, body, refused := abi.Send(&abi.Request{
		Method:    method(request),
		HTTPS:     it.scheme == "https",
		Authority: it.host,
		Path:      request.URL.RequestURI(),
		Header:    header,
	}, length != 0)
	if refused != nil {
		closeBody(request)
		return nil, it.failed(refused)
	}
	it.future = future
	if length == 0 {
		closeBody(request)
	} else {
		go it.sendBody(request.Body, body)
	}
	if err := it.await(); err != nil {
		return nil, err
	}
	response := it.head(request)
	if asksGzip && strings.EqualFold(response.Header.Get("Content-Encoding"), "gzip") {
		response.Header.Del("Content-Encoding")
		response.Header.Del("Content-Length")
		response.ContentLength = -1
		response.Uncompressed = true
		response.Body = &gzipBody{compressed: response.Body}
	}
	return response, nil
}

// header returns the header of a request as net/http sends it, and whether gzip is asked for without
// the tool's knowledge.
func (t transport) header(request *http.Request, length int64) (fields []abi.Field, asksGzip bool) {
	add := func(name, value string) { fields = append(fields, abi.Field{Name: name, Value: value}) }
	agent, hasAgent := request.Header["User-Agent"]
	switch {
	case !hasAgent:
		add("User-Agent", userAgent)
	case len(agent) > 0 && agent[0] != "":
		add("User-Agent", agent[0])
	}
	if length > 0 || length == 0 && sendsEmptyBody(request) {
		add("Content-Length", strconv.FormatInt(length, 10))
	}
	for name, values := range request.Header {
		if name == "User-Agent" || connectionHeaders[textproto.CanonicalMIMEHeaderKey(name)] {
			continue
		}
		for _, value := range values {
			add(name, strings.Trim(value, " \t"))
		}
	}
	asksGzip = !t.settings.DisableCompression && request.Header.Get("Accept-Encoding") == "" &&
		request.Header.Get("Range") == "" && request.Method != http.MethodHead
	if asksGzip {
		add("Accept-Encoding", "gzip")
	}
	return fields, asksGzip
}

func method(request *http.Request) string {
	if request.Method == "" {
		return http.MethodGet
	}
	return request.Method
}

// outgoingLength returns the length of the body in bytes; -1 if it is unknown.
func outgoingLength(request *http.Request) int64 {
	switch {
	case request.Body == nil || request.Body == http.NoBody:
		return 0
	case request.ContentLength != 0:
		return request.ContentLength
	default:
		return -1
	}
}

// sendsEmptyBody reports whether the length of an empty body is sent. Some servers expect it.
func sendsEmptyBody(request *http.Request) bool {
	switch request.Method {
	case http.MethodPost, http.MethodPut, http.MethodPatch:
		return true
	default:
		return false
	}
}

func closeBody(request *http.Request) {
	if request.Body != nil {
		request.Body.Close()
	}
}

// head returns the response without its body decoded.
func (it *exchange) head(request *http.Request) *http.Response {
	status := it.response.Status()
	response := &http.Response{
		Status:        strings.TrimSpace(fmt.Sprintf("%03d %s", status, http.StatusText(status))),
		StatusCode:    status,
		Proto:         "HTTP/1.1",
		ProtoMajor:    1,
		ProtoMinor:    1,
		Header:        http.Header{},
		Body:          it,
		ContentLength: -1,
		Request:       request,
	}
	for _, field := range it.response.Header() {
		response.Header.Add(field.Name, field.Value)
	}
	length, err := strconv.ParseInt(response.Header.Get("Content-Length"), 10, 64)
	if err == nil && length >= 0 {
		response.ContentLength = length
	}
	if request.Method == http.MethodHead || status == http.StatusNoContent || status == http.StatusNotModified {
		if request.Method != http.MethodHead {
			response.ContentLength = 0
		}
		it.Close()
		response.Body = http.NoBody
	}
	return response
}

// gzipBody decodes a body when it is read.
type gzipBody struct {
	compressed io.ReadCloser
	decoder    *gzip.Reader
	err        error
}

func (it *gzipBody) Read(part []byte) (int, error) {
	if it.decoder == nil && it.err == nil {
		it.decoder, it.err = gzip.NewReader(it.compressed)
	}
	if it.err != nil {
		return 0, it.err
	}
	return it.decoder.Read(part)
}

func (it *gzipBody) Close() error {
	return it.compressed.Close()
}

package abi

import (
	"runtime"
	"unsafe"
)

// Resources of wasi:http. Each is released with Drop, children before their parents.
type (
	OutgoingBody   uint32
	FutureResponse uint32
	Response       uint32
	IncomingBody   uint32
)

//go:wasmimport wasi:http/types@0.2.12 [static]fields.from-list
func importFieldsOf(entries unsafe.Pointer, length uint32, result unsafe.Pointer)

//go:wasmimport wasi:http/types@0.2.12 [method]fields.entries
func importEntries(fields uint32, result unsafe.Pointer)

//go:wasmimport wasi:http/types@0.2.12 [resource-drop]fields
func importDropFields(fields uint32)

//go:wasmimport wasi:http/types@0.2.12 [constructor]outgoing-request
func importNewRequest(headers uint32) uint32

//go:wasmimport wasi:http/types@0.2.12 [resource-drop]outgoing-request
func importDropRequest(request uint32)

//go:wasmimport wasi:http/types@0.2.12 [method]outgoing-request.set-method
func importSetMethod(request, is uint32, other string) uint32

//go:wasmimport wasi:http/types@0.2.12 [method]outgoing-request.set-scheme
func importSetScheme(request, hasScheme, is uint32, other string) uint32

//go:wasmimport wasi:http/types@0.2.12 [method]outgoing-request.set-authority
func importSetAuthority(request, hasAuthority uint32, authority string) uint32

//go:wasmimport wasi:http/types@0.2.12 [method]outgoing-request.set-path-with-query
func importSetPath(request, hasPath uint32, path string) uint32

//go:wasmimport wasi:http/types@0.2.12 [method]outgoing-request.body
func importRequestBody(request uint32, result unsafe.Pointer)

//go:wasmimport wasi:http/types@0.2.12 [method]outgoing-body.write
func importBodyWrite(body uint32, result unsafe.Pointer)

//go:wasmimport wasi:http/types@0.2.12 [static]outgoing-body.finish
func importBodyFinish(body, hasTrailers, trailers uint32, result unsafe.Pointer)

//go:wasmimport wasi:http/types@0.2.12 [resource-drop]outgoing-body
func importDropOutgoingBody(body uint32)

//go:wasmimport wasi:http/outgoing-handler@0.2.12 handle
func importHandle(request, hasOptions, options uint32, result unsafe.Pointer)

//go:wasmimport wasi:http/types@0.2.12 [method]future-incoming-response.subscribe
func importSubscribeFuture(future uint32) uint32

//go:wasmimport wasi:http/types@0.2.12 [method]future-incoming-response.get
func importFutureGet(future uint32, result unsafe.Pointer)

//go:wasmimport wasi:http/types@0.2.12 [resource-drop]future-incoming-response
func importDropFuture(future uint32)

//go:wasmimport wasi:http/types@0.2.12 [method]incoming-response.status
func importStatus(response uint32) uint32

//go:wasmimport wasi:http/types@0.2.12 [method]incoming-response.headers
func importResponseHeaders(response uint32) uint32

//go:wasmimport wasi:http/types@0.2.12 [method]incoming-response.consume
func importConsume(response uint32, result unsafe.Pointer)

//go:wasmimport wasi:http/types@0.2.12 [resource-drop]incoming-response
func importDropResponse(response uint32)

//go:wasmimport wasi:http/types@0.2.12 [method]incoming-body.stream
func importBodyStream(body uint32, result unsafe.Pointer)

//go:wasmimport wasi:http/types@0.2.12 [resource-drop]incoming-body
func importDropIncomingBody(body uint32)

//go:wasmimport wasi:http/types@0.2.12 http-error-code
func importErrorCode(err uint32, result unsafe.Pointer)

// memoryField is `tuple<field-name, field-value>`.
type memoryField struct {
	name, value span
}

// memoryHandle is `result<T>` for a resource T, with or without a value of the error.
type memoryHandle struct {
	isError uint8
	handle  uint32
}

// memoryHTTPError is `error-code`. Only its largest case is aligned to 8.
type memoryHTTPError struct {
	is      uint8
	payload [3]uint64
}

// memoryHandled is `result<T, error-code>` for a resource T.
type memoryHandled struct {
	isError uint8
	// The error. A resource is at its beginning.
	error memoryHTTPError
}

// memoryFuture is the result of `future-incoming-response.get`.
type memoryFuture struct {
	isSome uint8
	result struct {
		// True if the response was taken before.
		isError uint8
		result  memoryHandled
	}
}

// memoryErrorCode is `option<error-code>`.
type memoryErrorCode struct {
	isSome uint8
	error  memoryHTTPError
}

// handle returns the resource of a result without an error.
func (it *memoryHandled) handle() uint32 {
	return *(*uint32)(unsafe.Pointer(&it.error))
}

func (it *memoryHTTPError) lift() *HTTPError {
	err := &HTTPError{Case: it.is}
	isSome := *(*uint8)(unsafe.Pointer(&it.payload)) != 0
	switch it.is {
	case HTTPRequestBodySize, HTTPResponseBodySize:
		if isSome {
			err.Limit = it.payload[1]
		}
	case HTTPRequestHeaderSectionSize, HTTPResponseHeaderSectionSize:
		if isSome {
			err.Limit = it.payload[0] >> 32
		}
	}
	return err
}

// httpErrorOf is `http-error-code`. An error that is not one of HTTP is an internal error.
func httpErrorOf(cause uint32) *HTTPError {
	var result memoryErrorCode
	receive()
	defer lifted()
	importErrorCode(cause, unsafe.Pointer(&result))
	if result.isSome == 0 {
		return &HTTPError{Case: HTTPInternalError}
	}
	return result.error.lift()
}

// Request is the head of a request.
type Request struct {
	Method string
	HTTPS  bool
	// Authority is the host, with its port if that is not the scheme's own.
	Authority string
	// Path includes the query.
	Path   string
	Header []Field
}

// methods has the index of each case of `method` with a name.
var methods = [...]string{"GET", "HEAD", "POST", "PUT", "DELETE", "CONNECT", "OPTIONS", "TRACE", "PATCH"}

// Send is `outgoing-handler.handle`. If the request has a body, the caller writes and finishes it.
func Send(request *Request, hasBody bool) (FutureResponse, OutgoingBody, *HTTPError) {
	handle, err := request.lower()
	if err != nil {
		return 0, 0, err
	}
	var body memoryHandle
	if hasBody {
		importRequestBody(handle, unsafe.Pointer(&body))
	}
	var result memoryHandled
	receive()
	defer lifted()
	// The request now belongs to the host.
	importHandle(handle, 0, 0, unsafe.Pointer(&result))
	if result.isError == 0 {
		return FutureResponse(result.handle()), OutgoingBody(body.handle), nil
	}
	if hasBody {
		importDropOutgoingBody(body.handle)
	}
	return 0, 0, result.error.lift()
}

func (it *Request) lower() (uint32, *HTTPError) {
	var keep pins
	entries := make([]memoryField, len(it.Header))
	for i, field := range it.Header {
		// Values may have bytes that are not UTF-8.
		value := []byte(field.Value)
		entries[i] = memoryField{keep.text(field.Name), lower(&keep, value)}
	}
	var fields memoryHandle
	importFieldsOf(unsafe.Pointer(unsafe.SliceData(entries)), uint32(len(entries)), unsafe.Pointer(&fields))
	runtime.KeepAlive(entries)
	runtime.KeepAlive(keep)
	if fields.isError != 0 {
		return 0, &HTTPError{Case: HTTPRequestHeaderSize}
	}
	request := importNewRequest(fields.handle)
	failed := &HTTPError{Case: HTTPRequestURIInvalid}
	switch {
	case !setMethod(request, it.Method):
		failed.Case = HTTPRequestMethodInvalid
	case importSetScheme(request, 1, flag(it.HTTPS), "") != 0:
	case importSetAuthority(request, 1, valid(it.Authority)) != 0:
	case importSetPath(request, 1, valid(it.Path)) != 0:
	default:
		return request, nil
	}
	importDropRequest(request)
	return 0, failed
}

func setMethod(request uint32, method string) bool {
	for is, name := range methods {
		if name == method {
			return importSetMethod(request, uint32(is), "") == 0
		}
	}
	return importSetMethod(request, uint32(len(methods)), valid(method)) == 0
}

// Write returns the stream of the body, which is dropped before the body is finished.
func (it OutgoingBody) Write() OutputStream {
	var result memoryHandle
	importBodyWrite(uint32(it), unsafe.Pointer(&result))
	return OutputStream(result.handle)
}

// Finish ends the body. If it fails, the response has the reason.
func (it OutgoingBody) Finish() {
	var result memoryHandled
	receive()
	defer lifted()
	importBodyFinish(uint32(it), 0, 0, unsafe.Pointer(&result))
}

// Drop breaks the body off.
func (it OutgoingBody) Drop() {
	importDropOutgoingBody(uint32(it))
}

// Subscribe returns a pollable that is ready when the response, or an error, is there.
func (it FutureResponse) Subscribe() Pollable {
	return Pollable(importSubscribeFuture(uint32(it)))
}

// Get returns the response, or its error. It returns false if it is not there yet.
func (it FutureResponse) Get() (Response, *HTTPError, bool) {
	var result memoryFuture
	receive()
	defer lifted()
	importFutureGet(uint32(it), unsafe.Pointer(&result))
	outer := &result.result
	switch {
	case result.isSome == 0:
		return 0, nil, false
	case outer.isError != 0:
		return 0, &HTTPError{Case: HTTPInternalError}, true
	case outer.result.isError != 0:
		return 0, outer.result.error.lift(), true
	default:
		return Response(outer.result.handle()), nil, true
	}
}

// Drop releases the future, and cancels the request if there is no response yet.
func (it FutureResponse) Drop() {
	importDropFuture(uint32(it))
}

// Status returns the status code.
func (it Response) Status() int {
	return int(importStatus(uint32(it)))
}

// Header returns the header fields.
func (it Response) Header() []Field {
	fields := importResponseHeaders(uint32(it))
	defer importDropFields(fields)
	var result span
	receive()
	defer lifted()
	importEntries(fields, unsafe.Pointer(&result))
	memory := elements[memoryField](result)
	entries := make([]Field, len(memory))
	for i, field := range memory {
		entries[i] = Field{field.name.text(), field.value.text()}
	}
	return entries
}

// Body returns the body and its stream.
func (it Response) Body() (IncomingBody, InputStream) {
	var body, stream memoryHandle
	importConsume(uint32(it), unsafe.Pointer(&body))
	importBodyStream(body.handle, unsafe.Pointer(&stream))
	return IncomingBody(body.handle), InputStream(stream.handle)
}

// Drop releases the response.
func (it Response) Drop() {
	importDropResponse(uint32(it))
}

// Drop releases the body.
func (it IncomingBody) Drop() {
	importDropIncomingBody(uint32(it))
}

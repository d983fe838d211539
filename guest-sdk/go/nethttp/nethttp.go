// Package nethttp lets net/http send requests from a plugin. Import it for its side effect:
//
//	import (
//		"net/http"
//
//		_ "cofferdam/nethttp"
//	)
//
// [http.DefaultTransport] then sends the requests of the schemes http and https through the host,
// so that [http.Get], [http.DefaultClient] and clients without a transport of their own work as
// elsewhere: bodies are streamed in both directions, contexts and timeouts end a request,
// redirects are followed, gzip is decoded, and goroutines can wait for several responses at the
// same time. Outside a component, the import changes nothing.
//
// The manifest of the plugin must request the addresses: `http = ["GET https://api.example.com/"]`.
// Each redirect is a request of its own, and needs a grant as well.
//
// The host has the connections. It verifies certificates and sets the header Host from the URL, and
// there are no proxies, trailers or upgrades. Of the settings of [http.Transport], only
// DisableCompression has an effect, and a transport other than [http.DefaultTransport], such as a
// clone, cannot send requests.
//
// The error of a request is a [*net/url.Error] that wraps an [*Error]:
//
//	response, err := http.Get(url)
//	if errors.Is(err, fs.ErrPermission) { … }
package nethttp

import (
	"io"
	"io/fs"
	"net"
	"os"
	"strconv"
	"syscall"

	"cofferdam/internal/abi"
)

// Reason is the reason of an [Error].
type Reason uint8

const (
	// Failed means that the connection or the server failed in another way.
	Failed Reason = iota
	// Denied means that no grant covers the request, or its address.
	Denied
	// UnknownHost means that the lookup of the host failed.
	UnknownHost
	// Unreachable means that there is no route to the host.
	Unreachable
	// Refused means that the host refused the connection.
	Refused
	// Closed means that the connection was closed before the response was complete.
	Closed
	// TimedOut means that a time limit of the host passed. The timeout of a client or a context is
	// an error of its own, as elsewhere.
	TimedOut
	// TLS means that the certificate was rejected, or that the TLS connection failed.
	TLS
	// Limit means that a limit of the host is reached.
	Limit
	// Invalid means that the method, the URL or a header is invalid.
	Invalid
)

// Error is the error of a request. With [errors.Is], it matches [fs.ErrPermission] if it was
// denied, [os.ErrDeadlineExceeded] if it timed out, [syscall.ECONNREFUSED] if the connection was
// refused, and [syscall.ECONNRESET] and [io.ErrUnexpectedEOF] if it was closed. With [errors.As], it
// is a [*net.DNSError] if the host is unknown.
//
// A tool that returns a denial as its error tells the model how the request can be granted.
type Error struct {
	Reason Reason
	// Host is the host of the request, with its port if that is not the scheme's own.
	Host string
	// Detail is the message; it names the host.
	Detail string
}

// Error returns the message.
func (err *Error) Error() string {
	if err.Detail == "" {
		return "the request to " + err.Host + " failed"
	}
	return err.Detail
}

// Timeout reports whether a time limit passed. It is that of [*net/url.Error] too.
func (err *Error) Timeout() bool {
	return err.Reason == TimedOut
}

// Is compares with the errors of the standard library.
func (err *Error) Is(target error) bool {
	switch err.Reason {
	case Denied:
		return target == fs.ErrPermission
	case Refused:
		return target == syscall.ECONNREFUSED
	case Closed:
		return target == syscall.ECONNRESET || target == io.ErrUnexpectedEOF
	case TimedOut:
		return target == os.ErrDeadlineExceeded
	default:
		return false
	}
}

// As converts an unknown host to a [*net.DNSError].
func (err *Error) As(target any) bool {
	unknown, is := target.(**net.DNSError)
	if !is || err.Reason != UnknownHost {
		return false
	}
	*unknown = &net.DNSError{Err: "no such host", Name: err.Host, IsNotFound: true}
	return true
}

// ForModel reports whether the model sees the message if a tool returns the error: it does for a
// denial, which says how the request can be granted.
func (err *Error) ForModel() bool {
	return err.Reason == Denied
}

// errorOf describes an error of the host.
func errorOf(scheme, host string, cause *abi.HTTPError) *Error {
	reason, detail := describe(scheme, host, cause)
	return &Error{reason, host, detail}
}

func describe(scheme, host string, cause *abi.HTTPError) (Reason, string) {
	switch cause.Case {
	case abi.HTTPRequestDenied:
		return Denied, host + ": no grant for this request; the operator can allow it with --allow-http " +
			scheme + "://" + host + "/"
	case abi.HTTPDestinationIPProhibited:
		return Denied, host + ": no grant for its address, which is not public; " +
			"the operator can allow it with `addresses` beside the rule"
	case abi.HTTPDNSError, abi.HTTPDestinationNotFound:
		return UnknownHost, "the host " + host + " is unknown"
	case abi.HTTPDNSTimeout:
		return TimedOut, "the lookup of the host " + host + " timed out"
	case abi.HTTPDestinationIPUnroutable:
		return Unreachable, "there is no route to the host " + host
	case abi.HTTPDestinationUnavailable:
		return Unreachable, "the connection to " + host + " failed"
	case abi.HTTPConnectionRefused:
		return Refused, "the connection to " + host + " was refused"
	case abi.HTTPConnectionTerminated, abi.HTTPResponseIncomplete:
		return Closed, "the connection to " + host + " was closed before the response was complete"
	case abi.HTTPConnectionTimeout, abi.HTTPConnectionReadTimeout, abi.HTTPConnectionWriteTimeout,
		abi.HTTPResponseTimeout:
		return TimedOut, "the connection to " + host + " timed out"
	case abi.HTTPTLSCertificateError:
		return TLS, "the certificate of " + host + " was rejected"
	case abi.HTTPTLSProtocolError:
		return TLS, "the TLS connection to " + host + " failed"
	case abi.HTTPTLSAlertReceived:
		return TLS, host + " refused the TLS connection"
	case abi.HTTPRequestURIInvalid, abi.HTTPRequestURITooLong:
		return Invalid, "the URL of the request to " + host + " is invalid"
	case abi.HTTPRequestMethodInvalid:
		return Invalid, "the method of the request to " + host + " is invalid"
	case abi.HTTPRequestHeaderSize, abi.HTTPRequestHeaderSectionSize:
		return Invalid, "a header of the request to " + host + " is invalid, or too large"
	case abi.HTTPConnectionLimitReached:
		return Limit, host + ": the host has reached its limit of open connections"
	case abi.HTTPRequestBodySize:
		return Limit, host + ": the call has reached its limit of sent data" + bytes(cause.Limit)
	case abi.HTTPResponseBodySize:
		return Limit, host + ": the call has reached its limit of received data" + bytes(cause.Limit)
	case abi.HTTPResponseHeaderSectionSize, abi.HTTPResponseHeaderSize:
		return Limit, host + ": the headers of the response exceed the limit of 100 headers, or that" + bytes(cause.Limit)
	case abi.HTTPConfigurationError:
		return Failed, host + ": a header that the operator configured has no value"
	case abi.HTTPProtocolError:
		return Failed, "the connection to " + host + " failed: its server broke HTTP"
	default:
		return Failed, "the connection to " + host + " failed"
	}
}

func bytes(limit uint64) string {
	if limit == 0 {
		return ""
	}
	return " of " + strconv.FormatUint(limit, 10) + " bytes"
}

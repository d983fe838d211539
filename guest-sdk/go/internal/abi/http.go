package abi

// The cases of `wasi:http/types.error-code`.
const (
	HTTPDNSTimeout uint8 = iota
	HTTPDNSError
	HTTPDestinationNotFound
	HTTPDestinationUnavailable
	HTTPDestinationIPProhibited
	HTTPDestinationIPUnroutable
	HTTPConnectionRefused
	HTTPConnectionTerminated
	HTTPConnectionTimeout
	HTTPConnectionReadTimeout
	HTTPConnectionWriteTimeout
	HTTPConnectionLimitReached
	HTTPTLSProtocolError
	HTTPTLSCertificateError
	HTTPTLSAlertReceived
	HTTPRequestDenied
	HTTPRequestLengthRequired
	HTTPRequestBodySize
	HTTPRequestMethodInvalid
	HTTPRequestURIInvalid
	HTTPRequestURITooLong
	HTTPRequestHeaderSectionSize
	HTTPRequestHeaderSize
	HTTPRequestTrailerSectionSize
	HTTPRequestTrailerSize
	HTTPResponseIncomplete
	HTTPResponseHeaderSectionSize
	HTTPResponseHeaderSize
	HTTPResponseBodySize
	HTTPResponseTrailerSectionSize
	HTTPResponseTrailerSize
	HTTPResponseTransferCoding
	HTTPResponseContentCoding
	HTTPResponseTimeout
	HTTPUpgradeFailed
	HTTPProtocolError
	HTTPLoopDetected
	HTTPConfigurationError
	HTTPInternalError
)

// HTTPError is `wasi:http/types.error-code`.
type HTTPError struct {
	Case uint8
	// Limit is the number of bytes of an exceeded limit; 0 if the host has not named it.
	Limit uint64
}

// Field is a header field.
type Field struct {
	Name, Value string
}

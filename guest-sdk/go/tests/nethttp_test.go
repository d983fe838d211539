package tests

import (
	"errors"
	"io"
	"io/fs"
	"net"
	"net/http"
	"net/http/httptest"
	"net/url"
	"os"
	"syscall"
	"testing"

	"cofferdam"
	"cofferdam/cofferdamtest"
	"cofferdam/nethttp"
)

func TestErrorsOfRequests(t *testing.T) {
	wrapped := func(reason nethttp.Reason) error {
		err := &nethttp.Error{Reason: reason, Host: "example.com", Detail: "example.com: no"}
		return &url.Error{Op: "Get", URL: "http://example.com/", Err: err}
	}
	for reason, target := range map[nethttp.Reason]error{
		nethttp.Denied: fs.ErrPermission, nethttp.Refused: syscall.ECONNREFUSED,
		nethttp.Closed: io.ErrUnexpectedEOF, nethttp.TimedOut: os.ErrDeadlineExceeded,
	} {
		if !errors.Is(wrapped(reason), target) || errors.Is(wrapped(nethttp.Failed), target) {
			t.Errorf("%d is not %v", reason, target)
		}
	}
	var timeout net.Error
	if !errors.As(wrapped(nethttp.TimedOut), &timeout) || !timeout.Timeout() {
		t.Error("a timeout is none")
	}
	var unknown *net.DNSError
	if !errors.As(wrapped(nethttp.UnknownHost), &unknown) || unknown.Name != "example.com" {
		t.Errorf("%v is no unknown host", unknown)
	}
	check(t, (&nethttp.Error{Host: "a:1"}).Error(), "the request to a:1 failed")
}

func TestRequestsOutsideAComponent(t *testing.T) {
	server := httptest.NewServer(http.HandlerFunc(func(writer http.ResponseWriter, _ *http.Request) {
		io.WriteString(writer, "hello")
	}))
	defer server.Close()
	check(t, on(t, &cofferdamtest.Host{}, func(*cofferdam.Call) (any, error) {
		response, err := http.Get(server.URL)
		if err != nil {
			return nil, err
		}
		defer response.Body.Close()
		body, err := io.ReadAll(response.Body)
		return string(body), err
	}), `"hello"`)
}

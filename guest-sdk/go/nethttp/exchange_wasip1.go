package nethttp

import (
	"context"
	"io"
	"net/http"
	"sync"

	"cofferdam/internal/abi"
)

// exchange is a request and its response, whose body it is.
type exchange struct {
	ctx    context.Context
	cancel context.CancelCauseFunc
	scheme string
	host   string

	future   abi.FutureResponse
	response abi.Response

	// Held while the body is read, so that Close waits for Read.
	reading sync.Mutex
	body    abi.IncomingBody
	stream  abi.InputStream
	// The end of the body, or the reason why it cannot be read.
	end error
}

// failed returns an error of the host.
func (it *exchange) failed(cause *abi.HTTPError) error {
	return errorOf(it.scheme, it.host, cause)
}

// sendBody sends the body of the request and closes it. If the server stops reading, the response
// has the reason.
func (it *exchange) sendBody(from io.ReadCloser, body abi.OutgoingBody) {
	defer from.Close()
	stream := body.Write()
	err := it.copyBody(from, stream)
	stream.Drop()
	if err != nil {
		it.cancel(err)
		body.Drop()
		return
	}
	body.Finish()
}

func (it *exchange) copyBody(from io.Reader, stream abi.OutputStream) error {
	part := make([]byte, partBytes)
	for {
		read, err := from.Read(part)
		isOpen, failed := it.write(stream, part[:read])
		switch {
		case failed != nil:
			return failed
		case !isOpen || err == io.EOF:
			return nil
		case err != nil:
			return err
		}
	}
}

// write writes all of a part. It returns false once the server reads no more.
func (it *exchange) write(stream abi.OutputStream, part []byte) (isOpen bool, err error) {
	for len(part) > 0 {
		permitted, end := stream.CheckWrite()
		if end != abi.StreamOpen {
			return false, nil
		}
		if permitted == 0 {
			if err := wait(it.ctx, stream.Subscribe()); err != nil {
				return false, err
			}
			continue
		}
		now := part[:min(len(part), permitted)]
		if stream.Write(now) != abi.StreamOpen {
			return false, nil
		}
		part = part[len(now):]
	}
	return true, nil
}

// await waits for the head of the response.
func (it *exchange) await() error {
	for {
		response, failed, is := it.future.Get()
		switch {
		case failed != nil:
			return it.failed(failed)
		case is:
			it.response = response
			it.body, it.stream = response.Body()
			return nil
		}
		if err := wait(it.ctx, it.future.Subscribe()); err != nil {
			return err
		}
	}
}

// Read reads the body of the response.
func (it *exchange) Read(part []byte) (int, error) {
	it.reading.Lock()
	defer it.reading.Unlock()
	if len(part) == 0 {
		return 0, nil
	}
	for it.end == nil {
		data, end, failed := it.stream.Read(min(len(part), partBytes))
		switch {
		case failed != nil:
			it.finish(it.failed(failed))
		case end != abi.StreamOpen:
			it.finish(io.EOF)
		case len(data) > 0:
			return copy(part, data), nil
		default:
			if err := wait(it.ctx, it.stream.Subscribe()); err != nil {
				it.finish(err)
			}
		}
	}
	return 0, it.end
}

// Close breaks the response off if it has not been read to its end.
func (it *exchange) Close() error {
	// A read that waits is woken.
	it.cancel(http.ErrBodyReadAfterClose)
	it.reading.Lock()
	defer it.reading.Unlock()
	it.finish(http.ErrBodyReadAfterClose)
	return nil
}

// finish releases the resources once and records the end of the body.
func (it *exchange) finish(end error) {
	if it.end == nil {
		it.end = end
		it.release()
	}
}

// release releases the resources, and ends sending the body of the request.
func (it *exchange) release() {
	it.cancel(nil)
	if it.stream != 0 {
		it.stream.Drop()
		it.body.Drop()
	}
	if it.response != 0 {
		it.response.Drop()
	}
	if it.future != 0 {
		it.future.Drop()
	}
	it.stream, it.response, it.future = 0, 0, 0
}

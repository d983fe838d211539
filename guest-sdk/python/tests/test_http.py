"""Tests the parts of HTTP that need no host."""

import unittest
import urllib.error

from cofferdam import RequestDenied, _unexpected
from cofferdam._http._wire import RequestHead, RequestParser, response_head


def parse(data: bytes, step: int) -> tuple[list[RequestHead], bytes, bool]:
    parser = RequestParser()
    heads, body = [], b""
    for at in range(0, len(data), step):
        for part in parser.feed(memoryview(data[at : at + step])):
            if isinstance(part, RequestHead):
                heads.append(part)
            else:
                body += part
    return heads, body, parser.is_complete


class Wire(unittest.TestCase):
    def check(self, data: bytes, method: str, target: str, body: bytes) -> None:
        for step in (1, 2, 3, 7, len(data)):
            with self.subTest(step=step):
                heads, found, is_complete = parse(data, step)
                self.assertEqual([(head.method, head.target) for head in heads], [(method, target)])
                self.assertEqual(found, body)
                self.assertTrue(is_complete)

    def test_a_request_without_a_body(self) -> None:
        self.check(b"GET /a?b=c HTTP/1.1\r\nHost: x\r\n\r\n", "GET", "/a?b=c", b"")
        self.check(b"POST / HTTP/1.1\r\nContent-Length: 0\r\n\r\n", "POST", "/", b"")

    def test_a_body_with_a_length(self) -> None:
        self.check(b"PUT / HTTP/1.1\r\ncontent-length: 11\r\n\r\nhello\r\n\r\nyo", "PUT", "/", b"hello\r\n\r\nyo")

    def test_a_body_in_chunks(self) -> None:
        head = b"POST / HTTP/1.1\r\nTransfer-Encoding: chunked\r\n\r\n"
        self.check(head + b"5\r\nhello\r\nA;x=y\r\n0123\r\n6789\r\n0\r\n\r\n", "POST", "/", b"hello0123\r\n6789")
        self.check(head + b"1\r\na\r\n0\r\nTrailer: x\r\n\r\n", "POST", "/", b"a")

    def test_an_incomplete_request(self) -> None:
        self.assertEqual(parse(b"GET / HTTP/1.1\r\n", 4), ([], b"", False))
        self.assertFalse(parse(b"PUT / HTTP/1.1\r\nContent-Length: 3\r\n\r\nab", 4)[2])

    def test_headers(self) -> None:
        ((head,), _, _) = parse(b"GET / HTTP/1.1\r\nX-A:  b: c \r\nX-A: \xe9\r\n\r\n", 99)
        self.assertEqual(head.headers, [("X-A", b"b: c"), ("X-A", b"\xe9")])

    def test_what_is_refused(self) -> None:
        for line in (b"CONNECT a:443 HTTP/1.1", b"GET http://a/ HTTP/1.1"):
            with self.subTest(line), self.assertRaisesRegex(OSError, "a request to a proxy"):
                parse(line + b"\r\n\r\n", 99)
        with self.assertRaisesRegex(ValueError, "at most 262144 bytes"):
            parse(b"GET / HTTP/1.1\r\nX: " + b"x" * 300_000, 10_000)
        with self.assertRaises(ValueError):
            parse(b"PUT / HTTP/1.1\r\nTransfer-Encoding: chunked\r\n\r\nzz\r\n", 99)

    def test_a_response(self) -> None:
        headers = [("content-type", b"a/b"), ("transfer-encoding", b"chunked"), ("connection", b"x")]
        expected = b"HTTP/1.1 404 Not Found\r\ncontent-type: a/b\r\nConnection: close\r\n\r\n"
        self.assertEqual(response_head(404, headers), expected)
        self.assertEqual(response_head(799, []), b"HTTP/1.1 799 \r\nConnection: close\r\n\r\n")


class Unexpected(unittest.TestCase):
    def test_an_exception(self) -> None:
        self.assertEqual(
            _unexpected.failure(LookupError("the shelf is empty")).message, "LookupError: the shelf is empty"
        )
        self.assertEqual(_unexpected.failure(SystemExit()).message, "SystemExit")

    def test_a_refusal_in_an_exception_of_a_library(self) -> None:
        denied = RequestDenied("a: no grant for this request")
        self.assertIsInstance(denied, ConnectionError)
        try:
            try:
                raise denied
            except OSError as error:
                raise urllib.error.URLError(error)
        except OSError as error:
            self.assertIs(_unexpected.failure(error), denied)

    def test_a_refusal_before_an_exception_of_the_tool(self) -> None:
        try:
            try:
                raise RequestDenied("a: no grant for this request")
            except OSError:
                raise KeyError("x")
        except KeyError as error:
            self.assertEqual(_unexpected.failure(error).message, "KeyError: 'x'")


if __name__ == "__main__":
    unittest.main()

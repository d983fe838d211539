// HTTP for tools in C++. cofferdam_http.h documents the rules.
//
//     auto response = cofferdam::http::send({.url = "https://api.example.com/items"});
//     if (!response) return std::unexpected(response.error());
//     auto body = response->text(1 << 20);
//     if (!body) return std::unexpected(body.error());
//
// Parts of a response are read with `read`, so that a body need not be in memory:
//
//     std::array<char, 4096> part;
//     for (;;) {
//         auto length = response->read(part);
//         if (!length) return std::unexpected(length.error());
//         if (!*length) break;
//     }

#ifndef COFFERDAM_HTTP_HPP
#define COFFERDAM_HTTP_HPP

#include "cofferdam.hpp"
#include "cofferdam_http.h"

#include <algorithm>
#include <chrono>
#include <cstdint>
#include <functional>
#include <limits>
#include <memory>
#include <span>
#include <utility>

namespace cofferdam::detail {

// Returns a timeout for the C library, which takes 0 as none: a negative one has passed already.
inline std::uint32_t timeout_ms(std::chrono::milliseconds timeout) {
    if (timeout.count() < 0) return 1;
    return static_cast<std::uint32_t>(std::min<std::int64_t>(timeout.count(), std::numeric_limits<std::uint32_t>::max()));
}

} // namespace cofferdam::detail

namespace cofferdam::http {

struct header {
    std::string name;
    std::string value;
};

// Source of a body: fills the beginning of a buffer and returns the number of bytes, 0 at the end,
// or nothing to break the request off.
using source = std::function<std::optional<std::size_t>(std::span<char>)>;

struct request {
    std::string method = "GET";
    std::string url; // `http` or `https`
    std::vector<header> headers = {};
    std::string body = {};
    // Read in parts while the request is sent, instead of `body`.
    http::source source = {};
    // The length of the source, if it is known; otherwise it is sent in chunks.
    std::optional<std::size_t> source_length = {};
    // For the exchange, up to the end of the response's body. Zero for that of the call. One of
    // more than 49 days is shortened to 49 days.
    std::chrono::milliseconds timeout{0};
    // Redirects to follow. With 0, a redirect is a response like any other.
    std::uint32_t redirects_max = 10;
};

// Response whose body has not been read. Its connection is closed when it is destroyed.
class response {
  public:
    explicit response(const cofferdam_http_response &given) : given_(given) {}
    response(response &&other) noexcept : given_(std::exchange(other.given_, {})) {}
    response &operator=(response &&other) noexcept {
        std::swap(given_, other.given_);
        return *this;
    }
    ~response() { cofferdam_http_close(&given_); }

    // A status of 400 or more is not an error.
    int status() const { return given_.status; }

    // Returns the last URL, after redirects.
    std::string url() const { return detail::owned(given_.url); }

    std::vector<header> headers() const {
        std::vector<header> made;
        for (std::size_t at = 0; at < given_.header_count; at++)
            made.push_back({detail::owned(given_.headers[at].name), detail::owned(given_.headers[at].value)});
        return made;
    }

    // Returns the first header of this name, in any case.
    std::optional<std::string> header_of(const std::string &name) const {
        cofferdam_string value = cofferdam_http_header_of(&given_, name.c_str());
        if (!value.data) return std::nullopt;
        return detail::owned(value);
    }

    // Reads a part of the body, waiting for at least one byte. Returns 0 at the end.
    asked<std::size_t> read(std::span<char> part) {
        std::size_t length;
        cofferdam_error error = cofferdam_http_read(&given_, part.data(), part.size(), &length);
        if (error.code) return detail::refused(error);
        return length;
    }

    // Reads the rest of the body. The error is COFFERDAM_HTTP_LIMIT if it is longer than
    // `bytes_max`.
    asked<std::string> text(std::size_t bytes_max) {
        cofferdam_bytes body;
        cofferdam_error error = cofferdam_http_read_all(&given_, bytes_max, &body);
        if (error.code) return detail::refused(error);
        return std::string(reinterpret_cast<const char *>(body.data), body.length);
    }

  private:
    cofferdam_http_response given_;
};

// Request that is under way. Requests that are started one after the other run at the same time.
class exchange {
  public:
    // Sends a request, with its body, without waiting for the response.
    static asked<exchange> start(http::request request) {
        exchange made;
        made.state_ = std::make_unique<state>(std::move(request));
        cofferdam_http_request lowered = made.state_->lowered();
        cofferdam_error error = cofferdam_http_start(&lowered, &made.given_);
        if (error.code) return detail::refused(error);
        return made;
    }

    // Waits for the head of the response, and follows redirects. Call it once.
    asked<response> wait() {
        cofferdam_http_response given;
        cofferdam_error error = cofferdam_http_wait(given_, &given);
        if (error.code) return detail::refused(error);
        return response(given);
    }

  private:
    // What the C library points to until the response is there.
    struct state {
        http::request request;
        std::vector<cofferdam_http_header> headers = {};

        explicit state(http::request given) : request(std::move(given)) {
            for (const header &one : request.headers) headers.push_back({detail::lent(one.name), detail::lent(one.value)});
        }

        cofferdam_http_request lowered() {
            cofferdam_http_request made = {};
            made.method = detail::lent(request.method);
            made.url = detail::lent(request.url);
            made.headers = headers.data();
            made.header_count = headers.size();
            if (request.source) {
                made.source = fill;
                made.context = this;
                made.has_length = request.source_length.has_value();
                made.body_length = request.source_length.value_or(0);
            } else {
                made.body = request.body.data();
                made.body_length = request.body.size();
            }
            made.timeout_ms = detail::timeout_ms(request.timeout);
            made.redirects_max = request.redirects_max;
            return made;
        }

        static std::size_t fill(void *context, void *buffer, std::size_t capacity) {
            auto length = static_cast<state *>(context)->request.source({static_cast<char *>(buffer), capacity});
            return length.value_or(COFFERDAM_HTTP_STOP);
        }
    };

    exchange() = default;

    std::unique_ptr<state> state_;
    cofferdam_http_exchange *given_ = nullptr;
};

// Sends a request and waits for the head of its response.
inline asked<response> send(request request) {
    auto started = exchange::start(std::move(request));
    if (!started) return std::unexpected(std::move(started.error()));
    return started->wait();
}

} // namespace cofferdam::http

#endif

// Copyright 2026 The weft Authors.
// SPDX-License-Identifier: Apache-2.0

#ifndef WEFT_EXAMPLES_WEBSOCKET_HANDSHAKE_H_
#define WEFT_EXAMPLES_WEBSOCKET_HANDSHAKE_H_

#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "absl/status/statusor.h"

// How a WebSocket begins (RFC 6455, section 4.2): as a request of HTTP/1.1, whose answer
// proves that it was understood.

namespace weft {

// The head of a request. It has no more of HTTP than a handshake needs: no bodies, and one
// line for each header.
struct HttpHead {
  std::string method;
  std::string target;
  int minor_version = 1;                                     // Of HTTP/1.x.
  std::vector<std::pair<std::string, std::string>> headers;  // The names in lower case.

  // The value of a header that is there once; of a list that is in several, all of it.
  // `name` in lower case.
  std::optional<std::string> Find(std::string_view name) const;
  // Whether `token` is in such a list; in lower or upper case.
  bool Has(std::string_view name, std::string_view token) const;
};

// Reads a head, with the empty line at its end.
// Errors: INVALID_ARGUMENT, which says what is wrong.
absl::StatusOr<HttpHead> ParseHttpHead(std::string_view text);

// An answer that ends the connection. `status`: "404 Not Found"; `headers`: lines with their
// ends.
std::string HttpAnswer(std::string_view status, std::string_view type, std::string_view body,
                       std::string_view headers = "");

// The answer to a request for a WebSocket.
struct WebSocketHandshake {
  bool is_accepted = false;
  std::string answer;  // If it is accepted, frames follow; else the connection ends.
};
WebSocketHandshake AnswerHandshake(const HttpHead& head);

// The value of Sec-WebSocket-Accept for one of Sec-WebSocket-Key.
std::string WebSocketAccept(std::string_view key);

}  // namespace weft

#endif  // WEFT_EXAMPLES_WEBSOCKET_HANDSHAKE_H_

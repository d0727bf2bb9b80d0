// Copyright 2026 The weft Authors.
// SPDX-License-Identifier: Apache-2.0

#include "weft/examples/websocket_handshake.h"

#include <openssl/evp.h>

#include "absl/status/status.h"
#include "absl/strings/ascii.h"
#include "absl/strings/escaping.h"
#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"
#include "absl/strings/strip.h"

namespace weft {
namespace {

constexpr std::string_view kLineEnd = "\r\n";

// What names of headers and methods consist of (RFC 9110, section 5.6.2).
bool IsToken(std::string_view text) {
  for (const char c : text) {
    if (!absl::ascii_isalnum(static_cast<unsigned char>(c)) &&
        std::string_view("!#$%&'*+-.^_`|~").find(c) == std::string_view::npos) {
      return false;
    }
  }
  return !text.empty();
}

// A line may hold no control character; in a value a tab is allowed.
bool IsPrintable(std::string_view text) {
  for (const char c : text) {
    if ((static_cast<unsigned char>(c) < ' ' && c != '\t') || c == '\x7F') return false;
  }
  return true;
}

}  // namespace

std::optional<std::string> HttpHead::Find(std::string_view name) const {
  std::optional<std::string> found;
  for (const auto& [header, value] : headers) {
    if (header != name) continue;
    found = found.has_value() ? absl::StrCat(*found, ", ", value) : value;
  }
  return found;
}

bool HttpHead::Has(std::string_view name, std::string_view token) const {
  for (const std::string_view part : absl::StrSplit(Find(name).value_or(""), ',')) {
    if (absl::EqualsIgnoreCase(absl::StripAsciiWhitespace(part), token)) return true;
  }
  return false;
}

absl::StatusOr<HttpHead> ParseHttpHead(std::string_view text) {
  absl::string_view rest = text;
  if (!absl::ConsumeSuffix(&rest, "\r\n\r\n")) {
    return absl::InvalidArgumentError("the head does not end in an empty line");
  }
  HttpHead head;
  bool is_first = true;
  for (const std::string_view line : absl::StrSplit(rest, kLineEnd)) {
    if (!IsPrintable(line)) return absl::InvalidArgumentError("a control character in the head");
    if (is_first) {
      is_first = false;
      const std::vector<std::string_view> parts = absl::StrSplit(line, ' ');
      if (parts.size() != 3 || !IsToken(parts[0]) || parts[1].empty()) {
        return absl::InvalidArgumentError("the first line is no request");
      }
      if (parts[2] != "HTTP/1.1" && parts[2] != "HTTP/1.0") {
        return absl::InvalidArgumentError("the version is not HTTP/1.1");
      }
      head.method = parts[0];
      head.target = parts[1];
      head.minor_version = parts[2].back() - '0';
      continue;
    }
    const std::pair<std::string_view, std::string_view> header =
        absl::StrSplit(line, absl::MaxSplits(':', 1));
    if (header.first.size() == line.size() || !IsToken(header.first)) {
      return absl::InvalidArgumentError("a line of the head is no header");
    }
    head.headers.emplace_back(absl::AsciiStrToLower(header.first),
                              absl::StripAsciiWhitespace(header.second));
  }
  return head;
}

std::string HttpAnswer(std::string_view status, std::string_view type, std::string_view body,
                       std::string_view headers) {
  return absl::StrCat("HTTP/1.1 ", status, "\r\nContent-Type: ", type,
                      "\r\nContent-Length: ", body.size(), "\r\nConnection: close\r\n", headers,
                      "\r\n", body);
}

WebSocketHandshake AnswerHandshake(const HttpHead& head) {
  const auto refused = [](std::string_view status, std::string_view why,
                          std::string_view headers = "") {
    WebSocketHandshake handshake;
    handshake.answer = HttpAnswer(status, "text/plain", absl::StrCat(why, "\n"), headers);
    return handshake;
  };
  if (head.method != "GET") {
    return refused("405 Method Not Allowed", "A WebSocket begins with GET.", "Allow: GET\r\n");
  }
  if (head.minor_version < 1 || !head.Has("upgrade", "websocket") ||
      !head.Has("connection", "upgrade")) {
    return refused("426 Upgrade Required", "Here is a WebSocket.",
                   "Upgrade: websocket\r\nSec-WebSocket-Version: 13\r\n");
  }
  if (head.Find("sec-websocket-version") != "13") {
    return refused("426 Upgrade Required", "The version is 13.",
                   "Upgrade: websocket\r\nSec-WebSocket-Version: 13\r\n");
  }
  const std::string key = head.Find("sec-websocket-key").value_or("");
  std::string bytes;
  if (key.size() != 24 || !absl::Base64Unescape(key, &bytes) || bytes.size() != 16) {
    return refused("400 Bad Request", "Sec-WebSocket-Key is not base64 of 16 bytes.");
  }
  if (!head.Find("host").has_value()) return refused("400 Bad Request", "There is no Host.");
  WebSocketHandshake handshake;
  handshake.is_accepted = true;
  handshake.answer = absl::StrCat(
      "HTTP/1.1 101 Switching Protocols\r\nUpgrade: websocket\r\nConnection: Upgrade\r\n"
      "Sec-WebSocket-Accept: ",
      WebSocketAccept(key), "\r\n\r\n");
  return handshake;
}

std::string WebSocketAccept(std::string_view key) {
  const std::string text = absl::StrCat(key, "258EAFA5-E914-47DA-95CA-C5AB0DC85B11");
  unsigned char digest[EVP_MAX_MD_SIZE];
  unsigned int size = 0;
  EVP_Digest(text.data(), text.size(), digest, &size, EVP_sha1(), nullptr);
  return absl::Base64Escape(std::string_view(reinterpret_cast<const char*>(digest), size));
}

}  // namespace weft

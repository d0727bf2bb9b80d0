// Copyright 2026 The weft Authors.
// SPDX-License-Identifier: Apache-2.0

#include "weft/net/socket_address.h"

#include <algorithm>

#include "absl/strings/ascii.h"
#include "absl/strings/escaping.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/strip.h"

namespace weft {
namespace {

absl::Status Invalid(std::string_view text, std::string_view why) {
  return absl::InvalidArgumentError(
      absl::StrCat("\"", absl::CHexEscape(text), "\" is not a socket address: ", why));
}

bool AllDigits(std::string_view text) {
  return !text.empty() && std::all_of(text.begin(), text.end(), absl::ascii_isdigit);
}

// Digits only: no sign, no space, no name of a service.
bool ParsePort(std::string_view text, uint16_t* port) {
  uint32_t value = 0;
  if (text.size() > 5 || !AllDigits(text) || !absl::SimpleAtoi(text, &value) || value > 65535) {
    return false;
  }
  *port = static_cast<uint16_t>(value);
  return true;
}

}  // namespace

absl::StatusOr<SocketAddress> SocketAddress::Parse(std::string_view text) {
  std::string_view rest = text;
  if (absl::ConsumePrefix(&rest, "unix:")) {
    const bool is_abstract = absl::ConsumePrefix(&rest, "@");
    if (!is_abstract && rest.find('\0') != std::string_view::npos) {
      return Invalid(text, "a path has no NUL; an abstract name is written unix:@name");
    }
    absl::StatusOr<SocketAddress> address =
        is_abstract ? FromAbstractName(rest) : FromUnixPath(rest);
    if (!address.ok()) return Invalid(text, address.status().message());
    return address;
  }
  const size_t colon = rest.rfind(':');
  if (colon == std::string_view::npos || rest.back() == ']') return Invalid(text, "it has no port");
  uint16_t port = 0;
  if (!ParsePort(rest.substr(colon + 1), &port)) {
    return Invalid(text, "the port is not a number from 0 to 65535");
  }
  std::string_view host = rest.substr(0, colon);
  const bool bracketed = absl::ConsumePrefix(&host, "[") && absl::ConsumeSuffix(&host, "]");
  absl::StatusOr<SocketAddress> address = FromHost(host, port);
  if (!address.ok()) return Invalid(text, "the host is not a numeric address");
  if (bracketed != (address->family() == Family::kIpv6)) {
    return Invalid(text, bracketed ? "brackets are for IPv6" : "an IPv6 address needs brackets");
  }
  return address;
}

absl::StatusOr<SocketAddress> SocketAddress::FromHost(std::string_view host, uint16_t port) {
  const auto invalid = [host] {
    return absl::InvalidArgumentError(
        absl::StrCat("\"", absl::CHexEscape(host), "\" is not a numeric address"));
  };
  // The system's functions stop at a NUL, and take what comes before for the whole.
  if (host.find('\0') != std::string_view::npos) return invalid();

  std::array<uint8_t, 4> ipv4;
  if (internal::ParseIpv4(std::string(host), ipv4.data())) return Ipv4(ipv4, port);

  uint32_t scope_id = 0;
  std::string_view plain = host;
  if (const size_t percent = host.find('%'); percent != std::string_view::npos) {
    const std::string_view scope = host.substr(percent + 1);
    plain = host.substr(0, percent);
    if (AllDigits(scope)) {
      if (!absl::SimpleAtoi(scope, &scope_id)) return invalid();
    } else {
      scope_id = internal::InterfaceNumber(std::string(scope));
      if (scope_id == 0) return invalid();
    }
  }
  std::array<uint8_t, 16> ipv6;
  if (!internal::ParseIpv6(std::string(plain), ipv6.data())) return invalid();
  return Ipv6(ipv6, port, scope_id);
}

absl::StatusOr<SocketAddress> SocketAddress::FromUnixPath(std::string_view path) {
  if (path.empty()) return absl::InvalidArgumentError("the path is empty");
  if (path[0] == '\0') return FromAbstractName(path.substr(1));
  if (path.find('\0') != std::string_view::npos) {
    return absl::InvalidArgumentError("the path has a NUL inside");
  }
  if (path.size() > internal::LongestUnixPath()) {
    return absl::InvalidArgumentError(absl::StrCat("AF_UNIX path too long: \"", path, "\" has ",
                                                   path.size(), " characters, and may have ",
                                                   internal::LongestUnixPath()));
  }
  SocketAddress address;
  address.family_ = Family::kUnix;
  address.set_path(std::string(path));
  return address;
}

absl::StatusOr<SocketAddress> SocketAddress::FromAbstractName(std::string_view name) {
  if (name.size() > internal::LongestUnixPath()) {
    return absl::InvalidArgumentError(absl::StrCat("AF_UNIX path too long: the abstract name has ",
                                                   name.size(), " characters, and may have ",
                                                   internal::LongestUnixPath()));
  }
  // What some systems give a socket that has no name; FromNative() takes it for that.
  if (!name.empty() && name.find_first_not_of('\0') == std::string_view::npos) {
    return absl::InvalidArgumentError("an abstract name of nothing but NULs is none");
  }
  SocketAddress address;
  address.family_ = Family::kUnix;
  address.set_path(absl::StrCat(std::string_view("\0", 1), name));
  return address;
}

SocketAddress SocketAddress::Ipv4(std::array<uint8_t, 4> bytes, uint16_t port) {
  SocketAddress address;
  address.family_ = Family::kIpv4;
  std::copy(bytes.begin(), bytes.end(), address.bytes_.begin());
  address.port_ = port;
  return address;
}

SocketAddress SocketAddress::Ipv6(std::array<uint8_t, 16> bytes, uint16_t port, uint32_t scope_id) {
  SocketAddress address;
  address.family_ = Family::kIpv6;
  address.bytes_ = bytes;
  address.port_ = port;
  address.scope_id_ = scope_id;
  return address;
}

SocketAddress SocketAddress::Ipv6Loopback(uint16_t port) {
  std::array<uint8_t, 16> bytes = {};
  bytes[15] = 1;
  return Ipv6(bytes, port);
}

bool SocketAddress::is_loopback() const {
  switch (family_) {
    case Family::kNone:
      return false;
    case Family::kIpv4:
      return bytes_[0] == 127;
    case Family::kIpv6:
      return bytes_ == Ipv6Loopback(0).bytes_;
    case Family::kUnix:
      return true;
  }
  return false;
}

bool SocketAddress::is_any() const {
  return is_ip() && std::all_of(bytes_.begin(), bytes_.end(), [](uint8_t b) { return b == 0; });
}

std::string SocketAddress::host() const {
  switch (family_) {
    case Family::kNone:
    case Family::kUnix:
      return std::string();
    case Family::kIpv4:
      return absl::StrCat(bytes_[0], ".", bytes_[1], ".", bytes_[2], ".", bytes_[3]);
    case Family::kIpv6: {
      std::string host = internal::PrintIpv6(bytes_.data());
      if (scope_id_ != 0) absl::StrAppend(&host, "%", scope_id_);
      return host;
    }
  }
  return std::string();
}

SocketDomain SocketAddress::domain() const {
  switch (family_) {
    case Family::kIpv6:
      return SocketDomain::kInet6;
    case Family::kUnix:
      return SocketDomain::kUnix;
    case Family::kNone:
    case Family::kIpv4:
      break;
  }
  return SocketDomain::kInet;
}

const std::string& SocketAddress::path() const {
  static const std::string& empty = *new std::string();  // Never destroyed.
  return path_ != nullptr ? *path_ : empty;
}

std::string SocketAddress::ToString() const {
  switch (family_) {
    case Family::kNone:
      return "no address";
    case Family::kIpv4:
      return absl::StrCat(host(), ":", port_);
    case Family::kIpv6:
      return absl::StrCat("[", host(), "]:", port_);
    case Family::kUnix:
      if (is_abstract()) return absl::StrCat("unix:@", std::string_view(path()).substr(1));
      // A path that would be read as an abstract name.
      if (!path().empty() && path()[0] == '@') return absl::StrCat("unix:./", path());
      return absl::StrCat("unix:", path());
  }
  return std::string();
}

}  // namespace weft

// Copyright 2026 The weft Authors.
// SPDX-License-Identifier: Apache-2.0

// What is read as an address is printed and read back as the same; what is not is refused
// with its name. And whatever the kernel's form of an address holds, it becomes one of
// ours, or none.
//
//   which of the three | text

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <string>
#include <string_view>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/escaping.h"
#include "absl/strings/match.h"
#include "weft/net/socket_address.h"
#include "weft/poller/sock_addr.h"
#include "weft/testing/fuzz_input.h"

namespace weft {
namespace {

// What is so of every address.
void CheckAddress(const SocketAddress& address) {
  FuzzCheck(SocketAddress::FromNative(address.ToNative()) == address,
            "the kernel's form is of another address");
  FuzzCheck(!address.ToString().empty(), "it has no text");
}

void CheckText(std::string_view text) {
  const absl::StatusOr<SocketAddress> address = SocketAddress::Parse(text);
  if (!address.ok()) {
    FuzzCheck(absl::IsInvalidArgument(address.status()), "the wrong code");
    FuzzCheck(absl::StrContains(address.status().message(), absl::CHexEscape(text)),
              "the text is not named");
    return;
  }
  CheckAddress(*address);
  const absl::StatusOr<SocketAddress> again = SocketAddress::Parse(address->ToString());
  FuzzCheck(again.ok() && *again == *address, "its own text is of another address");
}

void CheckHost(std::string_view text) {
  const uint16_t port = 80;
  const absl::StatusOr<SocketAddress> address = SocketAddress::FromHost(text, port);
  if (!address.ok()) {
    FuzzCheck(absl::IsInvalidArgument(address.status()), "the wrong code");
    return;
  }
  FuzzCheck(address->is_ip() && address->port() == port, "it is no IP address");
  CheckAddress(*address);
  const absl::StatusOr<SocketAddress> again = SocketAddress::FromHost(address->host(), port);
  FuzzCheck(again.ok() && *again == *address, "its own host is of another address");
}

void CheckNative(std::string_view bytes) {
  SockAddr native;
  native.length = static_cast<uint32_t>(std::min<size_t>(bytes.size(), SockAddr::kCapacity));
  std::memcpy(native.bytes, bytes.data(), native.length);
  const SocketAddress address = SocketAddress::FromNative(native);
  // A path that is longer than any that the kernel takes cannot be given back to it.
  if (address.path().size() > internal::LongestUnixPath() + 1) return;
  if (address.is_none()) {
    FuzzCheck(address.ToNative().length == 0, "none has a length");
  } else {
    CheckAddress(address);
  }
}

}  // namespace
}  // namespace weft

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  weft::FuzzInput input(data, size);
  switch (input.Below(3)) {
    case 0:
      weft::CheckText(input.Rest());
      break;
    case 1:
      weft::CheckHost(input.Rest());
      break;
    default:
      weft::CheckNative(input.Rest());
      break;
  }
  return 0;
}

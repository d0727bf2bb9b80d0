// Copyright 2026 The weft Authors.
// SPDX-License-Identifier: Apache-2.0

#ifndef WEFT_POLLER_SOCK_ADDR_H_
#define WEFT_POLLER_SOCK_ADDR_H_

#include <cstdint>

namespace weft {

// SockAddr
//
// The address of a socket as the kernel takes it: the bytes of a `sockaddr`,
// and how many of them count. `net/` has the type that parses and prints; this
// one is only carried.
//
//   SockAddr address;
//   std::memcpy(address.bytes, &in4, sizeof(in4));
//   address.length = sizeof(in4);
struct SockAddr {
  static constexpr uint32_t kCapacity = 128;  // sizeof(sockaddr_storage), everywhere.

  alignas(8) unsigned char bytes[kCapacity] = {};
  uint32_t length = 0;
};

}  // namespace weft

#endif  // WEFT_POLLER_SOCK_ADDR_H_

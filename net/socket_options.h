// Copyright 2026 The weft Authors.
// SPDX-License-Identifier: Apache-2.0

#ifndef WEFT_NET_SOCKET_OPTIONS_H_
#define WEFT_NET_SOCKET_OPTIONS_H_

#include <optional>

#include "absl/status/statusor.h"
#include "absl/time/time.h"
#include "weft/poller/socket_api.h"

namespace weft {

// OptionKey
//
// An option of a socket, and the type of its value in a program: what
// `Socket::SetOption()` and `GetOption()` take, so that nobody has to know in what
// unit the kernel counts.
//
//   socket.SetOption(socket_option::kUserTimeout, absl::Seconds(30));
//   absl::StatusOr<bool> no_delay = socket.GetOption(socket_option::kNoDelay);
//
// A time is rounded up to the kernel's unit, so that it is never shorter than
// asked for.
template <class T>
struct OptionKey {
  SocketOption option;
  absl::Duration unit;  // Of a time.
};

namespace socket_option {

inline constexpr OptionKey<bool> kReuseAddr = {SocketOption::kReuseAddr, {}};
inline constexpr OptionKey<bool> kReusePort = {SocketOption::kReusePort, {}};
inline constexpr OptionKey<bool> kBroadcast = {SocketOption::kBroadcast, {}};
inline constexpr OptionKey<bool> kNoDelay = {SocketOption::kNoDelay, {}};  // TCP.
inline constexpr OptionKey<bool> kV6Only = {SocketOption::kV6Only, {}};

// Bytes. Linux reports twice of what was set.
inline constexpr OptionKey<int> kSendBuffer = {SocketOption::kSendBuffer, {}};
inline constexpr OptionKey<int> kReceiveBuffer = {SocketOption::kReceiveBuffer, {}};

// How long a close waits for what was sent to be acknowledged. Zero: it resets the
// connection; none: it does not wait, and sends all the same.
inline constexpr OptionKey<std::optional<absl::Duration>> kLinger = {SocketOption::kLinger,
                                                                     absl::Seconds(1)};

// TCP; see KeepAlive.
inline constexpr OptionKey<bool> kKeepAlive = {SocketOption::kKeepAlive, {}};
inline constexpr OptionKey<absl::Duration> kKeepAliveIdle = {SocketOption::kKeepAliveIdle,
                                                             absl::Seconds(1)};
inline constexpr OptionKey<absl::Duration> kKeepAliveInterval = {SocketOption::kKeepAliveInterval,
                                                                 absl::Seconds(1)};
inline constexpr OptionKey<int> kKeepAliveCount = {SocketOption::kKeepAliveCount, {}};

// TCP: the connection is lost when what was sent has not been acknowledged for so
// long. Zero: the system's choice, many minutes.
inline constexpr OptionKey<absl::Duration> kUserTimeout = {SocketOption::kUserTimeout,
                                                           absl::Milliseconds(1)};

// How many routers a packet may pass, IPv4 or IPv6; and a multicast, 1 unless set.
inline constexpr OptionKey<int> kHopLimit = {SocketOption::kHopLimit, {}};
inline constexpr OptionKey<int> kMulticastHopLimit = {SocketOption::kMulticastHopLimit, {}};
// What is sent to a group comes back to the members on this machine.
inline constexpr OptionKey<bool> kMulticastLoop = {SocketOption::kMulticastLoop, {}};

}  // namespace socket_option

// KeepAlive
//
// How TCP finds out that the peer of an idle connection is gone without a word (its
// power, a cable, a firewall that forgot): after `idle` of silence it is probed each
// `interval`, and after `count` probes without an answer the connection is lost with
// ETIMEDOUT, which wakes whoever reads. What is zero stays as the system has it: two
// hours, 75 seconds and nine.
struct KeepAlive {
  KeepAlive() {}
  explicit KeepAlive(absl::Duration after, absl::Duration each = absl::ZeroDuration(),
                     int times = 0)
      : idle(after), interval(each), count(times) {}

  absl::Duration idle;
  absl::Duration interval;
  int count = 0;
};

namespace internal {

// What the kernel takes, and back.
// Errors: INVALID_ARGUMENT if `value` is negative, or too long.
inline absl::StatusOr<int> OptionToNative(const OptionKey<bool>&, bool value) { return value; }
inline absl::StatusOr<int> OptionToNative(const OptionKey<int>&, int value) { return value; }
absl::StatusOr<int> OptionToNative(const OptionKey<absl::Duration>& key, absl::Duration value);
absl::StatusOr<int> OptionToNative(const OptionKey<std::optional<absl::Duration>>& key,
                                   std::optional<absl::Duration> value);

inline bool OptionFromNative(const OptionKey<bool>&, int native) { return native != 0; }
inline int OptionFromNative(const OptionKey<int>&, int native) { return native; }
inline absl::Duration OptionFromNative(const OptionKey<absl::Duration>& key, int native) {
  return native * key.unit;
}
inline std::optional<absl::Duration> OptionFromNative(
    const OptionKey<std::optional<absl::Duration>>& key, int native) {
  if (native < 0) return std::nullopt;
  return native * key.unit;
}

}  // namespace internal
}  // namespace weft

#endif  // WEFT_NET_SOCKET_OPTIONS_H_

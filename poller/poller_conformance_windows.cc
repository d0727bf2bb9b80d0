// Copyright 2026 The weft Authors.
// SPDX-License-Identifier: Apache-2.0

// What Windows has in place of descriptors, and what it adds: pipes and files that were
// opened for overlapped I/O, watching sockets.

#include <winsock2.h>
// Behind it.
#include <windows.h>
#include <ws2tcpip.h>

#include <cerrno>
#include <cstring>
#include <string>

#include "absl/time/time.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "weft/poller/poller_conformance.h"

namespace weft {

namespace {

SOCKET Socket(NativeHandle handle) { return static_cast<SOCKET>(handle); }

}  // namespace

int64_t PollerConformanceTest::SendNow(NativeHandle handle, std::string_view bytes) {
  return ::send(Socket(handle), bytes.data(), static_cast<int>(bytes.size()), 0);
}

std::string PollerConformanceTest::ReceiveNow(NativeHandle handle, size_t size) {
  std::string bytes(size, '\0');
  const int result = ::recv(Socket(handle), bytes.data(), static_cast<int>(size), 0);
  bytes.resize(result > 0 ? static_cast<size_t>(result) : 0);
  return bytes;
}

void PollerConformanceTest::CloseNow(NativeHandle handle) {
  EXPECT_EQ(::closesocket(Socket(handle)), 0);
}

SockAddr PollerConformanceTest::Loopback() {
  sockaddr_in in = {};
  in.sin_family = AF_INET;
  in.sin_addr.s_addr = ::htonl(INADDR_LOOPBACK);
  SockAddr address;
  std::memcpy(address.bytes, &in, sizeof(in));
  address.length = sizeof(in);
  return address;
}

// GetProcessHandleCount() is not there on Wine. Handles are multiples of four, and the
// lowest that is free is taken.
int PollerConformanceTest::OpenHandleCount() {
  constexpr uintptr_t kFarBeyond = 1'000;
  int count = 0;
  for (uintptr_t number = 1, last = 0; number < last + kFarBeyond; ++number) {
    DWORD flags;
    if (!::GetHandleInformation(reinterpret_cast<HANDLE>(number * 4), &flags)) continue;
    ++count;
    last = number;
  }
  return count;
}

absl::Duration PollerConformanceTest::CpuTime() {
  FILETIME created, ended, kernel, user;
  ::GetThreadTimes(::GetCurrentThread(), &created, &ended, &kernel, &user);
  const auto ticks = [](const FILETIME& time) {
    return static_cast<int64_t>(time.dwHighDateTime) << 32 | time.dwLowDateTime;
  };
  return absl::Nanoseconds(100) * (ticks(kernel) + ticks(user));
}

}  // namespace weft

// Copyright 2026 The weft Authors.
// SPDX-License-Identifier: Apache-2.0

#include "weft/poller/iocp_waker_windows.h"

#include <windows.h>

#include <cstdlib>

namespace weft::internal {

namespace {

void Post(void* port) {
  if (::PostQueuedCompletionStatus(port, 0, 0, nullptr)) return;
  constexpr char kMessage[] =
      "weft: cannot post to the completion port that wakes the event loop; was its handle closed? "
      "The loop could never be woken again.\n";
  DWORD written;
  ::WriteFile(::GetStdHandle(STD_ERROR_HANDLE), kMessage, sizeof(kMessage) - 1, &written, nullptr);
  std::abort();
}

}  // namespace

IocpWaker::~IocpWaker() {
  if (void* port = port_.load(std::memory_order_relaxed)) ::CloseHandle(port);
}

// Either this sees the port, or Open() sees that somebody has woken: all four are
// sequentially consistent. Both do no harm.
void IocpWaker::Wake() noexcept {
  if (is_posted_.exchange(true, std::memory_order_seq_cst)) return;
  if (void* port = port_.load(std::memory_order_seq_cst)) Post(port);
}

void* IocpWaker::Open() {
  void* port = port_.load(std::memory_order_relaxed);
  if (port != nullptr) return port;
  port = ::CreateIoCompletionPort(INVALID_HANDLE_VALUE, nullptr, 0, /*threads=*/1);
  if (port == nullptr) return nullptr;
  port_.store(port, std::memory_order_seq_cst);
  if (is_posted_.load(std::memory_order_seq_cst)) Post(port);
  return port;
}

}  // namespace weft::internal

// Copyright 2026 The weft Authors.
// SPDX-License-Identifier: Apache-2.0

#ifndef WEFT_POLLER_URING_LISTENER_LINUX_H_
#define WEFT_POLLER_URING_LISTENER_LINUX_H_

#include <cstddef>
#include <vector>

#include "weft/poller/perform_posix.h"

namespace weft::internal {

// UringListener
//
// A listening socket of which one request accepts again and again: that request, and the
// connections that have come while nobody asked for one. It is the request's name, so it
// stays where it is, and lives until that has ended. `Entry` is what the poller knows of
// the socket.
//
// Threads: belongs to the loop's thread.
template <class Entry>
class UringListener {
 public:
  explicit UringListener(Entry* of) : entry(of) {}
  UringListener(const UringListener&) = delete;
  UringListener& operator=(const UringListener&) = delete;
  ~UringListener() { CloseAccepted(); }

  bool has_accepted() const { return taken_ < accepted_.size(); }
  // For the next who asks; may throw std::bad_alloc.
  void Keep(int fd) { accepted_.push_back(fd); }
  // The oldest. REQUIRES: `has_accepted()`.
  int Take() {
    const int fd = accepted_[taken_++];
    if (taken_ == accepted_.size()) {
      accepted_.clear();
      taken_ = 0;
    }
    return fd;
  }
  void CloseAccepted() {
    while (has_accepted()) Close(Take());
  }

  Entry* entry;             // Null: its number stands for another file by now.
  bool is_armed = false;    // The kernel has the request.
  bool has_cancel = false;  // And was told to end it.

 private:
  std::vector<int> accepted_;
  size_t taken_ = 0;  // Of those.
};

}  // namespace weft::internal

#endif  // WEFT_POLLER_URING_LISTENER_LINUX_H_

// Copyright 2026 The weft Authors.
// SPDX-License-Identifier: Apache-2.0

#ifndef WEFT_POLLER_PIPE_WAKER_POSIX_H_
#define WEFT_POLLER_PIPE_WAKER_POSIX_H_

#include <atomic>

#include "weft/poller/waker.h"

namespace weft::internal {

// PipeWaker
//
// A waker over a pipe, for systems that have nothing better. The poller opens it
// when it first sleeps; a wake before that is remembered.
//
// The poller watches the read end, and empties it when it is readable.
class PipeWaker final : public Waker {
 public:
  PipeWaker() = default;
  PipeWaker(const PipeWaker&) = delete;
  PipeWaker& operator=(const PipeWaker&) = delete;
  ~PipeWaker() override;

  void Wake() noexcept override;

  // The end to watch, opened now if it was not; or a negated errno. If there was a
  // wake already, it is readable. To be called by the poller's thread only, as the
  // next ones.
  int Open();

  // The same, or -1 if it is not open.
  int fd() const { return read_fd_; }

  // Empties the pipe, and makes what happened before the wakes visible.
  void Drain();

 private:
  static constexpr int kUnopened = -1;
  static constexpr int kWokenUnopened = -2;

  int read_fd_ = -1;
  std::atomic<int> write_fd_{kUnopened};
  // Only for the order: a race detector does not see it in write and read.
  std::atomic<unsigned> wakes_{0};
};

}  // namespace weft::internal

#endif  // WEFT_POLLER_PIPE_WAKER_POSIX_H_

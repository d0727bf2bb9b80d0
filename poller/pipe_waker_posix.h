// Copyright 2026 The weft Authors.
// SPDX-License-Identifier: Apache-2.0

#ifndef WEFT_POLLER_PIPE_WAKER_POSIX_H_
#define WEFT_POLLER_PIPE_WAKER_POSIX_H_

#include "weft/poller/descriptor_waker_posix.h"

namespace weft::internal {

// PipeWaker
//
// A waker over a pipe, for systems that have nothing better.
//
// The poller watches the read end, and empties it when it is readable.
class PipeWaker final : public DescriptorWaker {
 public:
  PipeWaker() : DescriptorWaker("pipe") {}
  ~PipeWaker() override;

  // The end to watch, opened now if it was not; or a negated errno. If there was a
  // wake already, it is readable. To be called by the poller's thread only, as the
  // next ones.
  int Open();

  // The same, or -1 if it is not open.
  int fd() const { return read_fd_; }

  // Empties the pipe, and makes what happened before the wakes visible.
  void Drain();

 private:
  bool Signal(int fd) override;

  int read_fd_ = -1;
};

}  // namespace weft::internal

#endif  // WEFT_POLLER_PIPE_WAKER_POSIX_H_

// Copyright 2026 The weft Authors.
// SPDX-License-Identifier: Apache-2.0

#ifndef WEFT_POLLER_DESCRIPTOR_WAKER_POSIX_H_
#define WEFT_POLLER_DESCRIPTOR_WAKER_POSIX_H_

#include <atomic>

#include "weft/poller/waker.h"

namespace weft::internal {

// DescriptorWaker
//
// A waker over a descriptor, which the poller opens when it first needs it and which is
// the waker's from then on. A wake before that is remembered. What kind it is, and how it
// is signalled, is the derived class's to say:
//
//   int Open() { return signalled_fd() >= 0 ? signalled_fd() : Adopt(::eventfd(0, ...)); }
//   bool Signal(int fd) override { return ::write(fd, ...) == ...; }
//
// Threads: `Wake()` as that of `Waker`; the rest belongs to the poller's thread.
class DescriptorWaker : public Waker {
 public:
  DescriptorWaker(const DescriptorWaker&) = delete;
  DescriptorWaker& operator=(const DescriptorWaker&) = delete;

  void Wake() noexcept final;

  // To be called when a wake was reported: makes what happened before it visible.
  void Acquire() { wakes_.load(std::memory_order_acquire); }

 protected:
  // `channel` is what a message calls it: "eventfd".
  explicit DescriptorWaker(const char* channel) : channel_(channel) {}
  ~DescriptorWaker() override;

  // A negative number if it is not open.
  int signalled_fd() const { return fd_.load(std::memory_order_relaxed); }

  // Takes `fd`, which has just been opened, and signals it if there was a wake before.
  // Returns it.
  int Adopt(int fd);

 private:
  static constexpr int kUnopened = -1;
  static constexpr int kWokenUnopened = -2;

  // Makes the poller's kernel report it; false if that does not go. May change errno.
  // Async-signal-safe.
  virtual bool Signal(int fd) = 0;

  void SignalOrDie(int fd);

  const char* const channel_;
  std::atomic<int> fd_{kUnopened};
  // Only for the order: a race detector does not see it in system calls.
  std::atomic<unsigned> wakes_{0};
};

}  // namespace weft::internal

#endif  // WEFT_POLLER_DESCRIPTOR_WAKER_POSIX_H_

// Copyright 2026 The weft Authors.
// SPDX-License-Identifier: Apache-2.0

#include "weft/poller/uring_outer_linux.h"

#include <sys/epoll.h>
#include <sys/eventfd.h>
#include <sys/timerfd.h>
#include <unistd.h>

#include <algorithm>
#include <cstdint>
#include <ctime>

namespace weft::internal {

UringOuter::~UringOuter() {
  for (int fd : {set_fd_, event_fd_, timer_fd_}) {
    if (fd >= 0) ::close(fd);
  }
}

bool UringOuter::Open(Uring* ring, int waker_fd) {
  const int set = ::epoll_create1(EPOLL_CLOEXEC);
  int event_fd = ::eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
  const int timer = ::timerfd_create(CLOCK_MONOTONIC, TFD_CLOEXEC | TFD_NONBLOCK);
  epoll_event event = {.events = EPOLLIN, .data = {}};
  epoll_event wake = {.events = EPOLLIN | EPOLLET, .data = {}};  // Nobody reads it.
  if (set < 0 || event_fd < 0 || timer < 0 ||
      ::epoll_ctl(set, EPOLL_CTL_ADD, event_fd, &event) < 0 ||
      ::epoll_ctl(set, EPOLL_CTL_ADD, timer, &event) < 0 ||
      ::epoll_ctl(set, EPOLL_CTL_ADD, waker_fd, &wake) < 0 ||
      ring->Register(uring::kRegisterEventfd, &event_fd, 1) != 0) {
    for (int fd : {set, event_fd, timer}) {
      if (fd >= 0) ::close(fd);
    }
    return false;
  }
  set_fd_ = set;
  event_fd_ = event_fd;
  timer_fd_ = timer;
  return true;
}

int UringOuter::Move(Uring* ring) { return ring->Register(uring::kRegisterEventfd, &event_fd_, 1); }

void UringOuter::Clear() {
  uint64_t count;
  static_cast<void>(!::read(event_fd_, &count, sizeof(count)));
  epoll_event reported[3];
  ::epoll_wait(set_fd_, reported, 3, 0);  // Takes the wakes.
}

void UringOuter::Arm(TimePoint moment) {
  itimerspec when = {};
  if (moment != TimePoint::InfiniteFuture()) {
    moment = std::max(moment, TimePoint::FromNanoseconds(1));  // Zero would disarm.
    when.it_value.tv_sec = static_cast<time_t>(moment.nanoseconds() / 1'000'000'000);
    when.it_value.tv_nsec = static_cast<long>(moment.nanoseconds() % 1'000'000'000);
  }
  ::timerfd_settime(timer_fd_, TFD_TIMER_ABSTIME, &when, nullptr);
}

}  // namespace weft::internal

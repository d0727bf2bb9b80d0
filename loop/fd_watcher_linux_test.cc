// Copyright 2026 The weft Authors.
// SPDX-License-Identifier: Apache-2.0

// AddReader on what only Linux has.

#include <sys/epoll.h>
#include <sys/eventfd.h>
#include <unistd.h>

#include <memory>

#include "gtest/gtest.h"
#include "weft/loop/event_loop.h"

namespace weft {
namespace {

TEST(FdWatcherLinuxTest, AnEpollDescriptorCanBeWatched) {  // POLL 328, A-62
  const std::unique_ptr<EventLoop> loop = *EventLoop::Create();
  const int watched = ::eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
  const int inner = ::epoll_create1(EPOLL_CLOEXEC);
  epoll_event event = {};
  event.events = EPOLLIN;
  ASSERT_EQ(::epoll_ctl(inner, EPOLL_CTL_ADD, watched, &event), 0);
  int reports = 0;
  ASSERT_TRUE(loop->AddReader(inner, [&] { ++reports; }).ok());
  loop->RunOnce(absl::ZeroDuration());
  loop->RunOnce(absl::ZeroDuration());
  EXPECT_EQ(reports, 0);

  ASSERT_EQ(::eventfd_write(watched, 1), 0);
  loop->RunOnce(absl::ZeroDuration());

  EXPECT_EQ(reports, 1);
  loop->RemoveReader(inner);
  loop->Close();
  ::close(inner);
  ::close(watched);
}

}  // namespace
}  // namespace weft

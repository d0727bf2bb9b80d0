// Copyright 2026 The weft Authors.
// SPDX-License-Identifier: Apache-2.0

// The backend of docs/backends.md, and the other code of that page.

#include "weft/docs/select_poller.h"

#include <memory>
#include <string>
#include <utility>

#include "absl/strings/str_cat.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "weft/loop/run.h"
#include "weft/net/stream.h"
#include "weft/poller/poller_conformance.h"
#include "weft/poller/poller_registry.h"

namespace weft {

// [snippet backend-conformance]
INSTANTIATE_TEST_SUITE_P(Select, PollerConformanceTest, ::testing::Values(&MakeSelectPoller));
// [end]

namespace {

// [snippet backend-register]
void RegisterSelect() {
  weft::RegisterPoller({.name = "select", .make = &weft::MakeSelectPoller, .priority = -1});
}
// [end]

// [snippet backend-available]
std::string DescribePollers() {
  std::string text;
  for (const weft::PollerInfo& poller : weft::AvailablePollers()) {
    absl::StrAppend(&text, poller.name, ": ",
                    poller.status.ok() ? "works here" : poller.status.message(), "\n");
  }
  return text;
}
// [end]

Coro<std::string> Ask() {
  std::pair<Socket, Socket> sockets = Socket::Pair().value();
  Connection a = ToConnection(std::move(sockets.first));
  Connection b = ToConnection(std::move(sockets.second));
  a.writer.Write("hello");
  a.writer.Close();
  absl::StatusOr<std::string> all = co_await b.reader.Read(-1);
  co_return absl::StrCat(GetRunningLoop().poller_name(), ": ", all.value_or("nothing"));
}

TEST(SelectPollerTest, ALoopThatAsksForItRunsOnIt) {
  RegisterSelect();
  // [snippet backend-choose]
  weft::RunOptions options;
  options.poller = "select";
  std::string answer = weft::Run(Ask(), options);
  // [end]

  EXPECT_EQ(answer, "select: hello");
}

TEST(SelectPollerTest, IsListedWithTheOthers) {
  RegisterSelect();

  EXPECT_THAT(DescribePollers(), ::testing::HasSubstr("select: works here\n"));
}

}  // namespace
}  // namespace weft

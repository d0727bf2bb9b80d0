// Copyright 2026 The weft Authors.
// SPDX-License-Identifier: Apache-2.0

#include "weft/poller/poller_registry.h"

#include <cstdlib>

#include "absl/strings/string_view.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "weft/poller/fake_poller.h"
#include "weft/testing/environment_variable.h"

namespace weft {
namespace {

using ::testing::Contains;
using ::testing::Field;
using ::testing::HasSubstr;

std::unique_ptr<Poller> MakeFake() { return std::make_unique<FakePoller>(); }
absl::Status ProbeBroken() { return absl::UnimplementedError("no such kernel"); }

std::string Message(const absl::Status& status) { return std::string(status.message()); }

//
TEST(PollerRegistryTest, TheDefaultIsMade) {
  const absl::StatusOr<std::unique_ptr<Poller>> poller = MakePoller();

  ASSERT_TRUE(poller.ok()) << poller.status();
  EXPECT_EQ((*poller)->name(), DefaultPollerName());
}

TEST(PollerRegistryTest, AnUnknownNameIsNamedWithTheKnownOnes) {
  const absl::Status status = MakePoller("teapot").status();

  EXPECT_EQ(status.code(), absl::StatusCode::kInvalidArgument);
  EXPECT_THAT(Message(status), HasSubstr("'teapot'"));
  EXPECT_THAT(Message(status), HasSubstr(DefaultPollerName()));
}

TEST(PollerRegistryTest, AUsersOwnIsFoundByNameAndIsNotTheDefault) {
  const std::string before = DefaultPollerName();
  RegisterPoller({.name = "mine", .make = &MakeFake});

  const absl::StatusOr<std::unique_ptr<Poller>> poller = MakePoller("mine");

  ASSERT_TRUE(poller.ok()) << poller.status();
  EXPECT_EQ((*poller)->name(), "fake");
  EXPECT_EQ(DefaultPollerName(), before);
}

TEST(PollerRegistryTest, OneThatDoesNotWorkHereSaysWhyAndIsPassedOver) {
  RegisterPoller({.name = "broken", .make = &MakeFake, .probe = &ProbeBroken, .priority = 1'000});

  const absl::Status status = MakePoller("broken").status();

  EXPECT_EQ(status.code(), absl::StatusCode::kUnavailable);
  EXPECT_THAT(Message(status), HasSubstr("no such kernel"));
  EXPECT_NE(DefaultPollerName(), "broken");
  EXPECT_EQ(AvailablePollers().front().name, "broken");
  EXPECT_FALSE(AvailablePollers().front().status.ok());
  RegisterPoller({.name = "broken", .make = &MakeFake, .priority = -1});  // Repaired.
  EXPECT_TRUE(MakePoller("broken").ok());
  EXPECT_THAT(AvailablePollers(), Contains(Field(&PollerInfo::name, "broken")).Times(1));
}

TEST(PollerRegistryTest, TheNameComesFromTheOptionThenTheEnvironmentThenTheDefault) {
  UnsetEnvironment("WEFT_POLLER");
  EXPECT_EQ(ResolvePollerName(""), DefaultPollerName());
  SetEnvironment("WEFT_POLLER", "");
  EXPECT_EQ(ResolvePollerName(""), DefaultPollerName());
  SetEnvironment("WEFT_POLLER", "from_environment");
  EXPECT_EQ(ResolvePollerName(""), "from_environment");
  EXPECT_EQ(ResolvePollerName("chosen"), "chosen");

  EXPECT_THAT(Message(MakePoller().status()), HasSubstr("'from_environment' (from WEFT_POLLER)"));
  UnsetEnvironment("WEFT_POLLER");
}

}  // namespace
}  // namespace weft

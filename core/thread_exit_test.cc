// Copyright 2026 The weft Authors.
// SPDX-License-Identifier: Apache-2.0

#include "weft/core/thread_exit.h"

#include <string>
#include <thread>
#include <vector>

#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace weft::internal {
namespace {

using ::testing::ElementsAre;
using ::testing::IsEmpty;

// What the hooks of ended threads have seen. One thread at a time.
std::vector<std::string> seen;

constinit thread_local int value = 0;
constinit thread_local ThreadExitHook tell_value([] {
  seen.push_back("value " + std::to_string(value));
});
constinit thread_local ThreadExitHook tell_twice([] {
  seen.push_back("twice");
  if (value++ == 0) tell_twice.Register();
});
constinit thread_local ThreadExitHook tell_later([] {
  seen.push_back("later");
  tell_value.Register();
});

// A thread_local object with a destructor, which asks for a hook.
struct Asker {
  bool is_used = false;
  ~Asker() { was_heard = tell_value.Register(); }

  static inline bool was_heard = false;
};

thread_local Asker asker;

std::vector<std::string> SeenAtTheEndOf(void (*run)()) {
  seen.clear();
  std::thread(run).join();
  return seen;
}

TEST(ThreadExitTest, AHookSeesTheVariablesOfItsThread) {
  EXPECT_THAT(SeenAtTheEndOf([] {
                value = 5;
                EXPECT_TRUE(tell_value.Register());
                EXPECT_TRUE(tell_value.Register());  // Once is enough.
                value = 7;
              }),
              ElementsAre("value 7"));
}

TEST(ThreadExitTest, AThreadThatHasRegisteredNothingIsToldNothing) {
  EXPECT_THAT(SeenAtTheEndOf([] { value = 5; }), IsEmpty());
}

TEST(ThreadExitTest, TheLastOneThatWasRegisteredComesFirst) {
  EXPECT_THAT(SeenAtTheEndOf([] {
                value = 1;
                tell_value.Register();
                tell_twice.Register();
              }),
              ElementsAre("twice", "value 2"));
}

TEST(ThreadExitTest, AHookMayRegisterItselfAndOthers) {
  EXPECT_THAT(SeenAtTheEndOf([] { tell_twice.Register(); }), ElementsAre("twice", "twice"));
  EXPECT_THAT(SeenAtTheEndOf([] {
                value = 3;
                tell_later.Register();
              }),
              ElementsAre("later", "value 3"));
}

TEST(ThreadExitTest, WhoAsksInADestructorIsCalledOrTurnedAway) {
  // In either order of the hooks and the destructor.
  for (const bool is_first : {false, true}) {
    Asker::was_heard = false;
    const size_t at_least = is_first ? 1 : 0;
    const std::vector<std::string> told = SeenAtTheEndOf(
        is_first ? [] {
          tell_later.Register();
          asker.is_used = true;
        }
                 : [] { asker.is_used = true; });
    EXPECT_GE(told.size(), at_least);
    if (Asker::was_heard) {
      EXPECT_THAT(told, ::testing::Contains(::testing::StartsWith("value ")));
    }
  }
}

TEST(ThreadExitTest, EachOfManyThreadsIsHeard) {
  for (int i = 0; i < 100; ++i) {
    EXPECT_THAT(SeenAtTheEndOf([] { tell_value.Register(); }), ElementsAre("value 0"));
  }
}

}  // namespace
}  // namespace weft::internal

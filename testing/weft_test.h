// Copyright 2026 The weft Authors.
// SPDX-License-Identifier: Apache-2.0

#ifndef WEFT_TESTING_WEFT_TEST_H_
#define WEFT_TESTING_WEFT_TEST_H_

#include <exception>
#include <functional>
#include <utility>

#include "absl/time/time.h"
#include "gtest/gtest.h"
#include "weft/core/coro.h"
#include "weft/loop/environment.h"

// Tests whose bodies are coroutines, for GoogleTest.
//
//   WEFT_TEST(PatienceTest, AnHourIsNothing) {
//     weft::Task<int> task = weft::CreateTask(Count());
//     co_await weft::Sleep(absl::Hours(1));
//     WEFT_EXPECT_EQ(co_await std::move(task), 3600);
//   }
//
// The body is the main task of a loop of its own, in virtual time: nothing is
// waited for but I/O, and the order of events is the same in every run. A test
// that would wait for ever fails at once and names the tasks that wait. What
// the loop has to report (an exception in a callback, one that was never
// retrieved) is a failure too, unless the test sets a handler of its own.
//
// A test with peers outside of its loop, such as threads or processes, asks for
// the real clock: WEFT_TEST_IN_REAL_TIME. WEFT_TEST_F is for fixtures.
//
// GoogleTest's own EXPECT_... work in a body as long as no operand awaits. Its
// ASSERT_... do not, for they return: here they are WEFT_ASSERT_....
#define WEFT_TEST(Suite, Name)                                                           \
  WEFT_INTERNAL_TEST(Suite, Name, ::testing::Test, ::testing::internal::GetTestTypeId(), \
                     ::weft::internal::TestTime::kVirtual)
#define WEFT_TEST_IN_REAL_TIME(Suite, Name)                                              \
  WEFT_INTERNAL_TEST(Suite, Name, ::testing::Test, ::testing::internal::GetTestTypeId(), \
                     ::weft::internal::TestTime::kReal)
#define WEFT_TEST_F(Fixture, Name)                                                      \
  WEFT_INTERNAL_TEST(Fixture, Name, Fixture, ::testing::internal::GetTypeId<Fixture>(), \
                     ::weft::internal::TestTime::kVirtual)
#define WEFT_TEST_F_IN_REAL_TIME(Fixture, Name)                                         \
  WEFT_INTERNAL_TEST(Fixture, Name, Fixture, ::testing::internal::GetTypeId<Fixture>(), \
                     ::weft::internal::TestTime::kReal)

// The operands are evaluated first, so they may await.
#define WEFT_EXPECT_EQ(a, b) WEFT_INTERNAL_CHECK_2(EXPECT_EQ, a, b)
#define WEFT_EXPECT_NE(a, b) WEFT_INTERNAL_CHECK_2(EXPECT_NE, a, b)
#define WEFT_EXPECT_LT(a, b) WEFT_INTERNAL_CHECK_2(EXPECT_LT, a, b)
#define WEFT_EXPECT_LE(a, b) WEFT_INTERNAL_CHECK_2(EXPECT_LE, a, b)
#define WEFT_EXPECT_GT(a, b) WEFT_INTERNAL_CHECK_2(EXPECT_GT, a, b)
#define WEFT_EXPECT_GE(a, b) WEFT_INTERNAL_CHECK_2(EXPECT_GE, a, b)
#define WEFT_EXPECT_TRUE(a) WEFT_INTERNAL_CHECK_1(EXPECT_TRUE, a)
#define WEFT_EXPECT_FALSE(a) WEFT_INTERNAL_CHECK_1(EXPECT_FALSE, a)
#define WEFT_EXPECT_OK(a) WEFT_INTERNAL_CHECK_OK(EXPECT_TRUE, a)
// Needs gmock's matchers.
#define WEFT_EXPECT_THAT(a, matcher)                \
  do {                                              \
    auto&& weft_value = (a);                        \
    EXPECT_THAT(weft_value, matcher) << "  of " #a; \
  } while (false)

// The same, and the body ends if it fails.
#define WEFT_ASSERT_EQ(a, b) WEFT_INTERNAL_OR_RETURN(WEFT_EXPECT_EQ(a, b))
#define WEFT_ASSERT_NE(a, b) WEFT_INTERNAL_OR_RETURN(WEFT_EXPECT_NE(a, b))
#define WEFT_ASSERT_LT(a, b) WEFT_INTERNAL_OR_RETURN(WEFT_EXPECT_LT(a, b))
#define WEFT_ASSERT_LE(a, b) WEFT_INTERNAL_OR_RETURN(WEFT_EXPECT_LE(a, b))
#define WEFT_ASSERT_GT(a, b) WEFT_INTERNAL_OR_RETURN(WEFT_EXPECT_GT(a, b))
#define WEFT_ASSERT_GE(a, b) WEFT_INTERNAL_OR_RETURN(WEFT_EXPECT_GE(a, b))
#define WEFT_ASSERT_TRUE(a) WEFT_INTERNAL_OR_RETURN(WEFT_EXPECT_TRUE(a))
#define WEFT_ASSERT_FALSE(a) WEFT_INTERNAL_OR_RETURN(WEFT_EXPECT_FALSE(a))
#define WEFT_ASSERT_OK(a) WEFT_INTERNAL_OR_RETURN(WEFT_EXPECT_OK(a))
#define WEFT_ASSERT_THAT(a, matcher) WEFT_INTERNAL_OR_RETURN(WEFT_EXPECT_THAT(a, matcher))

// The statement, which may await, throws an exception of that type.
#define WEFT_EXPECT_THROW(statement, Type)                       \
  do {                                                           \
    std::exception_ptr weft_thrown;                              \
    try {                                                        \
      statement;                                                 \
    } catch (...) {                                              \
      weft_thrown = std::current_exception();                    \
    }                                                            \
    EXPECT_TRUE(::weft::internal::IsThrown<Type>(weft_thrown))   \
        << "  " #statement " should throw " #Type ", and threw " \
        << ::weft::internal::DescribeThrown(weft_thrown);        \
  } while (false)

namespace weft {

// Moves the virtual time of the running test, as a callback that blocks would.
// Errors: RuntimeError without a loop in virtual time.
void AdvanceTime(absl::Duration duration);

namespace internal {

enum class TestTime { kVirtual, kReal };

// Runs a test's body, and reports what it throws; at the place of the test.
void RunTest(TestTime time, const char* file, int line, const std::function<Coro<void>()>& body);

template <class E>
bool IsThrown(const std::exception_ptr& thrown) {
  if (thrown == nullptr) return false;
  try {
    std::rethrow_exception(thrown);
  } catch (const E&) {
    return true;
  } catch (...) {
    return false;
  }
}
std::string DescribeThrown(const std::exception_ptr& thrown);

// Counts the failures of the running test's body so far.
int CountFailures();

}  // namespace internal
}  // namespace weft

// -- Implementation details.

#define WEFT_INTERNAL_TEST(Suite, Name, Parent, parent_id, time)                                  \
  class Suite##_##Name##_WeftTest : public Parent /* NOLINT(bugprone-macro-parentheses) */ {      \
   public:                                                                                        \
    ::weft::Coro<void> WeftTestBody();                                                            \
  };                                                                                              \
  GTEST_TEST_(Suite, Name, Suite##_##Name##_WeftTest, parent_id) {                                \
    ::weft::internal::RunTest(time, __FILE__, __LINE__, [this] { return this->WeftTestBody(); }); \
  }                                                                                               \
  ::weft::Coro<void> Suite##_##Name##_WeftTest::WeftTestBody()

#define WEFT_INTERNAL_CHECK_1(CHECK, a) \
  do {                                  \
    auto&& weft_value = (a);            \
    CHECK(weft_value) << "  of " #a;    \
  } while (false)

#define WEFT_INTERNAL_CHECK_2(CHECK, a, b)                 \
  do {                                                     \
    auto&& weft_left = (a);                                \
    auto&& weft_right = (b);                               \
    CHECK(weft_left, weft_right) << "  of " #a " and " #b; \
  } while (false)

#define WEFT_INTERNAL_CHECK_OK(CHECK, a)                                                \
  do {                                                                                  \
    auto&& weft_value = (a);                                                            \
    CHECK(weft_value.ok()) << "  " #a ": " << ::weft::internal::StatusText(weft_value); \
  } while (false)

#define WEFT_INTERNAL_OR_RETURN(check)                                 \
  do {                                                                 \
    const int weft_failures = ::weft::internal::CountFailures();       \
    check;                                                             \
    if (::weft::internal::CountFailures() != weft_failures) co_return; \
  } while (false)

namespace weft::internal {

template <class S>
std::string StatusText(const S& status) {
  if constexpr (requires { status.status(); }) {
    return std::string(status.status().ToString());
  } else {
    return std::string(status.ToString());
  }
}

}  // namespace weft::internal

#endif  // WEFT_TESTING_WEFT_TEST_H_

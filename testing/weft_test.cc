// Copyright 2026 The weft Authors.
// SPDX-License-Identifier: Apache-2.0

#include "weft/testing/weft_test.h"

#include "weft/core/clock.h"
#include "weft/core/errors.h"
#include "weft/core/exception_context.h"
#include "weft/loop/event_loop.h"
#include "weft/loop/run.h"

namespace weft {

void AdvanceTime(absl::Duration duration) {
  VirtualClock* clock = GetRunningLoop().clock().AsVirtual();
  if (clock == nullptr) throw RuntimeError("AdvanceTime() needs a test in virtual time");
  clock->Advance(duration);
}

namespace internal {

void RunTest(TestTime time, const char* file, int line, const std::function<Coro<void>()>& body) {
  VirtualClock clock;
  RunOptions options;
  if (time == TestTime::kVirtual) options.environment.clock = &clock;
  try {
    Runner runner(options);
    runner.GetLoop().SetExceptionHandler([=](EventLoop&, const ExceptionContext& context) {
      ADD_FAILURE_AT(file, line) << ToString(context);
    });
    runner.Run(body());
    runner.Close();
  } catch (...) {
    ADD_FAILURE_AT(file, line) << "the test threw " << DescribeException(std::current_exception());
  }
}

std::string DescribeThrown(const std::exception_ptr& thrown) {
  return thrown == nullptr ? "nothing" : DescribeException(thrown);
}

int CountFailures() {
  const ::testing::TestResult* result =
      ::testing::UnitTest::GetInstance()->current_test_info()->result();
  int failures = 0;
  for (int i = 0; i < result->total_part_count(); ++i) {
    if (result->GetTestPartResult(i).failed()) ++failures;
  }
  return failures;
}

}  // namespace internal
}  // namespace weft

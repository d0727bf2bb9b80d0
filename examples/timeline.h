// Copyright 2026 The weft Authors.
// SPDX-License-Identifier: Apache-2.0

#ifndef WEFT_EXAMPLES_TIMELINE_H_
#define WEFT_EXAMPLES_TIMELINE_H_

#include <cstdint>
#include <string>
#include <string_view>

#include "absl/time/time.h"
#include "weft/core/clock.h"
#include "weft/core/time_point.h"

namespace weft {

// Timeline
//
// Writes down what happens, when it happens, in columns, and the figures in the
// end. Counts what was not as it should be.
class Timeline {
 public:
  // Prints the headings. Time begins here.
  void Begin(std::string_view title);

  void Tell(std::string_view who, std::string_view what) const;

  // Tells of it if it does not hold.
  void Check(bool holds, std::string_view what);
  int failures() const { return failures_; }

  // "connections     1,002   1,001 of them at once"
  void Figure(std::string_view name, std::string_view figure, std::string_view remark) const;

  // Since it began.
  absl::Duration Elapsed() const { return SteadyClock::Read() - begin_; }

 private:
  TimePoint begin_;
  int failures_ = 0;
};

// 12345678 -> "12,345,678"
std::string Grouped(int64_t number);

// "12.3 ms"
std::string InMilliseconds(absl::Duration duration);

// What the process has used so far.
struct ProcessorTime {
  double in_program = 0;  // Seconds.
  double in_kernel = 0;
  int64_t sleeps = 0;  // How often it gave the processor away to wait.
};
ProcessorTime ReadProcessorTime();

// How many of `clients` the system has descriptors for, two for each; asks for
// more if need be.
int AllowDescriptors(int clients);

}  // namespace weft

#endif  // WEFT_EXAMPLES_TIMELINE_H_

// Copyright 2026 The weft Authors.
// SPDX-License-Identifier: Apache-2.0

#ifndef WEFT_TESTING_CAPTURED_LOG_H_
#define WEFT_TESTING_CAPTURED_LOG_H_

#include <mutex>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "weft/core/log.h"

namespace weft {

// CapturedLog
//
// Keeps what weft would write to its log, as long as it lives. One at a time.
//
//   CapturedLog log;
//   { Coro<> dropped = Work(); }
//   EXPECT_THAT(log.Take(), ElementsAre(StartsWith("coroutine 'Work' was never awaited")));
//
// Threads: any may log.
class CapturedLog {
 public:
  CapturedLog() {
    Take();
    before_ = SetLogSink(&Keep);
  }
  ~CapturedLog() { SetLogSink(before_); }
  CapturedLog(const CapturedLog&) = delete;

  // What came since the last call.
  std::vector<std::string> Take() {
    std::lock_guard<std::mutex> lock(TheMutex());
    return std::exchange(Messages(), {});
  }

 private:
  static void Keep(LogSeverity, std::string_view message) {
    std::lock_guard<std::mutex> lock(TheMutex());
    Messages().emplace_back(message);
  }
  static std::mutex& TheMutex() {
    static std::mutex mutex;
    return mutex;
  }
  static std::vector<std::string>& Messages() {
    static std::vector<std::string> messages;
    return messages;
  }

  LogSink before_;
};

}  // namespace weft

#endif  // WEFT_TESTING_CAPTURED_LOG_H_

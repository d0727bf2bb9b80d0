// Copyright 2026 The weft Authors.
// SPDX-License-Identifier: Apache-2.0

#include "weft/net/errno_status.h"

#include <cerrno>

#include "gtest/gtest.h"

namespace weft {
namespace {

TEST(ErrnoStatusTest, SaysWhatWasTriedAndWhatTheAnswerIsCalled) {
  absl::Status status = ErrnoStatus(-ECONNREFUSED, "connect to 127.0.0.1:1");

  EXPECT_EQ(status.code(), absl::StatusCode::kUnavailable);
  EXPECT_EQ(status.message(), "connect to 127.0.0.1:1: Connection refused [ECONNREFUSED]");
}

TEST(ErrnoStatusTest, GivesTheErrnoBack) {
  for (int error : {EPIPE, ECONNRESET, EADDRINUSE, ENOENT, EMFILE, ECANCELED}) {
    EXPECT_EQ(ErrnoOf(ErrnoStatus(-error, "x [EIO]")), error);
  }
  EXPECT_EQ(ErrnoOf(absl::OkStatus()), 0);
  EXPECT_EQ(ErrnoOf(absl::UnknownError("[EFOO]")), 0);
  EXPECT_EQ(ErrnoOf(absl::UnknownError("]")), 0);
}

}  // namespace
}  // namespace weft

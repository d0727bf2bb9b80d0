// Copyright 2026 The weft Authors.
// SPDX-License-Identifier: Apache-2.0

// What a File promises of files that only POSIX has.

#include <sys/stat.h>
#include <unistd.h>

#include <string>

#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "weft/net/errno_status.h"
#include "weft/net/file.h"
#include "weft/net/test_net.h"
#include "weft/testing/weft_test.h"

namespace weft {
namespace {

using ::testing::HasSubstr;

using Text = absl::StatusOr<std::string>;

class FilePosixTest : public NetTest {};

WEFT_TEST_F(FilePosixTest, IsMadeWithThePermissionsThatWereAskedFor) {
  const std::string path = ::testing::TempDir() + "/file_posix_test";
  ::unlink(path.c_str());
  absl::StatusOr<File> file = co_await File::Open(path, FileMode::kCreate, 0600);
  WEFT_ASSERT_OK(file.status());
  struct stat status;
  EXPECT_EQ(::stat(path.c_str(), &status), 0);
  EXPECT_EQ(status.st_mode & 0777, 0600u);
  EXPECT_EQ(::unlink(path.c_str()), 0);
}

// A file of which the system does not say how long it is.
WEFT_TEST_F(FilePosixTest, ReadsFilesWithoutASize) {
  Text text = co_await ReadFile("/proc/self/status");
  EXPECT_THAT(text.value(), HasSubstr("Threads:"));
}

WEFT_TEST_F(FilePosixTest, ADiskThatIsFullSaysSo) {
  absl::Status written = co_await WriteFile("/dev/full", "x");
  EXPECT_EQ(ErrnoOf(written), ENOSPC);
  EXPECT_THAT(std::string(written.message()), HasSubstr("/dev/full"));
}

}  // namespace
}  // namespace weft

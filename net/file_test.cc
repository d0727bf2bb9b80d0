// Copyright 2026 The weft Authors.
// SPDX-License-Identifier: Apache-2.0

#include "weft/net/file.h"

#include <unistd.h>

#include <string>
#include <utility>

#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "weft/core/errors.h"
#include "weft/core/no_throw.h"
#include "weft/core/sleep.h"
#include "weft/core/task.h"
#include "weft/loop/event_loop.h"
#include "weft/net/errno_status.h"
#include "weft/net/pipe.h"
#include "weft/net/test_net.h"
#include "weft/testing/weft_test.h"

namespace weft {
namespace {

using ::testing::HasSubstr;

using MaybeFile = absl::StatusOr<File>;
using Text = absl::StatusOr<std::string>;

// whatever waits for a disk does so on another thread.
class FileTest : public NetTest {
 protected:
  FileTest() { ::unlink(path_.c_str()); }
  ~FileTest() override { ::unlink(path_.c_str()); }

  const std::string path_ = ::testing::TempDir() + "/file_test";
};

WEFT_TEST_F(FileTest, ReadsWhatWasWritten) {
  const std::string data = Pattern(1 << 20);
  absl::Status written = co_await WriteFile(path_, data);
  WEFT_ASSERT_OK(written);
  Text text = co_await ReadFile(path_);
  EXPECT_TRUE(text.value() == data);
  written = co_await WriteFile(path_, "");
  WEFT_ASSERT_OK(written);
  text = co_await ReadFile(path_);
  EXPECT_EQ(text.value(), "");
}

WEFT_TEST_F(FileTest, HasAPosition) {
  absl::Status written = co_await WriteFile(path_, "0123456789");
  MaybeFile file = co_await File::Open(path_, FileMode::kReadWrite);
  WEFT_ASSERT_OK(file.status());
  Text text = co_await file->Read(3);
  EXPECT_EQ(text.value(), "012");
  text = co_await file->ReadAt(8, 100);
  EXPECT_EQ(text.value(), "89");
  written = co_await file->WriteAt(4, "xy");
  WEFT_EXPECT_OK(written);
  text = co_await file->Read(4);
  EXPECT_EQ(text.value(), "3xy6");
  written = co_await file->Write("!");
  WEFT_EXPECT_OK(written);
  text = co_await file->Read();
  EXPECT_EQ(text.value(), "89");
  text = co_await file->Read();
  EXPECT_EQ(text.value(), "");
  absl::StatusOr<int64_t> size = co_await file->Size();
  EXPECT_EQ(size.value(), 10);
  written = co_await file->Sync();
  WEFT_EXPECT_OK(written);
  written = co_await file->Close();
  WEFT_EXPECT_OK(written);
  text = co_await file->Read();
  EXPECT_EQ(ErrnoOf(text.status()), EBADF);
  EXPECT_FALSE(*file);
  EXPECT_EQ(file->handle(), kInvalidHandle);
}

WEFT_TEST_F(FileTest, HasModes) {
  MaybeFile file = co_await File::Open(path_);
  EXPECT_EQ(file.status().code(), absl::StatusCode::kNotFound);
  EXPECT_THAT(std::string(file.status().message()), HasSubstr(path_));
  file = co_await File::Open(path_, FileMode::kCreate, 0600);
  WEFT_ASSERT_OK(file.status());
  EXPECT_FALSE(IsInherited(file->handle()));
  file = co_await File::Open(path_, FileMode::kCreate);
  EXPECT_EQ(file.status().code(), absl::StatusCode::kAlreadyExists);

  file = co_await File::Open(path_, FileMode::kAppend);
  absl::Status written = co_await file->Write("a");
  file = co_await File::Open(path_, FileMode::kAppend);
  written = co_await file->Write("b");
  Text text = co_await ReadFile(path_);
  EXPECT_EQ(text.value(), "ab");
  text = co_await file->Read();
  EXPECT_EQ(ErrnoOf(text.status()), EBADF);
  EXPECT_THAT(std::string(text.status().message()), HasSubstr(path_));
  file = co_await File::Open(path_, FileMode::kWrite);
  text = co_await ReadFile(path_);
  EXPECT_EQ(text.value(), "");

  text = co_await ReadFile("/");
  EXPECT_EQ(ErrnoOf(text.status()), EISDIR);
  text = co_await ReadFile(std::string("/\0x", 3));
  EXPECT_EQ(text.status().code(), absl::StatusCode::kInvalidArgument);
  EXPECT_THROW(static_cast<void>(file->ReadAt(-1)), ValueError);
}

// The loop goes on while a thread waits.
WEFT_TEST_F_IN_REAL_TIME(FileTest, DoesNotHoldUpTheLoop) {
  const internal::RawPipe ends = internal::OpenRawPipe(internal::LentEnd::kBoth).value();
  File from = File::Adopt(ends.read_end);
  File to = File::Adopt(ends.write_end);
  Task<Text> reading = CreateTask(from.Read(100));
  co_await Sleep(absl::Milliseconds(5));
  EXPECT_FALSE(reading.Done());
  absl::Status written = co_await to.Write("x");
  WEFT_EXPECT_OK(written);
  Text text = co_await std::move(reading);
  EXPECT_EQ(text.value(), "x");

  // Nobody reads any more: an error, and no signal.
  written = co_await from.Close();
  WEFT_EXPECT_OK(written);
  written = co_await to.Write("x");
  EXPECT_EQ(ErrnoOf(written), EPIPE);
}

// The descriptor goes when the last job has ended.
WEFT_TEST_F_IN_REAL_TIME(FileTest, MayBeDroppedWhileAJobRuns) {
  const internal::RawPipe ends = internal::OpenRawPipe(internal::LentEnd::kBoth).value();
  File to = File::Adopt(ends.write_end);
  Task<Text> reading;
  {
    File from = File::Adopt(ends.read_end);
    reading = CreateTask(from.Read(100));
    co_await Sleep(absl::Milliseconds(2));
    absl::Status closed = co_await from.Close();
    WEFT_EXPECT_OK(closed);
  }
  absl::Status written = co_await to.Write("x");
  WEFT_EXPECT_OK(written);
  Text text = co_await std::move(reading);
  EXPECT_EQ(text.value(), "x");
}

WEFT_TEST_F(FileTest, OneThatIsCancelledLeavesNothingOpen) {
  for (int i = 0; i < 50; ++i) {
    Task<MaybeFile> opening = CreateTask(File::Open(path_, FileMode::kWrite));
    co_await Rounds(i % 4);
    opening.Cancel();
    co_await NoThrow(opening);
  }
}

}  // namespace
}  // namespace weft

// Copyright 2026 The weft Authors.
// SPDX-License-Identifier: Apache-2.0

#include "weft/net/file.h"

#include <algorithm>
#include <cerrno>

#include "absl/strings/str_cat.h"
#include "weft/core/closure.h"
#include "weft/core/errors.h"
#include "weft/loop/event_loop.h"
#include "weft/net/errno_status.h"

namespace weft {
namespace {

using internal::OpenFile;

absl::Status NoFile() { return ErrnoStatus(-EBADF, "use a file that is not open"); }

void CheckOffset(int64_t offset) {
  if (offset < 0) throw ValueError("offset must be non-negative");
}

// Runs `job`, which gives a T, on a thread.
template <class T, class F>
Coro<T> OnThread(F job) {
  Future<T> done = GetRunningLoop().RunInExecutor(nullptr, Take(job));
  co_return co_await std::move(done);
}

Coro<absl::StatusOr<std::string>> ReadFrom(std::shared_ptr<OpenFile> file, int64_t offset,
                                           size_t count) {
  if (file == nullptr) co_return NoFile();
  auto job = [file, offset, count] { return file->Read(offset, count); };
  file = nullptr;
  co_return co_await OnThread<absl::StatusOr<std::string>>(std::move(job));
}

Coro<absl::Status> WriteTo(std::shared_ptr<OpenFile> file, int64_t offset, std::string data) {
  if (file == nullptr) co_return NoFile();
  auto job = [file, offset, data = std::move(data)] { return file->Write(offset, data); };
  file = nullptr;
  co_return co_await OnThread<absl::Status>(std::move(job));
}

}  // namespace

Coro<absl::StatusOr<File>> File::Open(std::string path, FileMode mode, int permissions) {
  auto job = [path = std::move(path), mode, permissions] {
    return OpenFile::Open(path, mode, permissions);
  };
  using Opened = absl::StatusOr<std::shared_ptr<OpenFile>>;
  Opened opened = co_await OnThread<Opened>(std::move(job));
  if (!opened.ok()) co_return opened.status();
  co_return File(*std::move(opened));
}

File File::Adopt(NativeHandle handle, std::string name) {
  return File(std::make_shared<OpenFile>(handle, std::move(name)));
}

NativeHandle File::handle() const { return file_ == nullptr ? kInvalidHandle : file_->handle(); }

Coro<absl::StatusOr<std::string>> File::Read(size_t count) const {
  return ReadFrom(file_, /*offset=*/-1, count);
}

Coro<absl::StatusOr<std::string>> File::ReadAt(int64_t offset, size_t count) const {
  CheckOffset(offset);
  return ReadFrom(file_, offset, count);
}

Coro<absl::Status> File::Write(std::string data) const {
  return WriteTo(file_, /*offset=*/-1, std::move(data));
}

Coro<absl::Status> File::WriteAt(int64_t offset, std::string data) const {
  CheckOffset(offset);
  return WriteTo(file_, offset, std::move(data));
}

Coro<absl::Status> File::Sync() const {
  if (file_ == nullptr) co_return NoFile();
  auto job = [file = file_] { return file->Sync(); };
  co_return co_await OnThread<absl::Status>(std::move(job));
}

Coro<absl::StatusOr<int64_t>> File::Size() const {
  if (file_ == nullptr) co_return NoFile();
  auto job = [file = file_] { return file->Size(); };
  co_return co_await OnThread<absl::StatusOr<int64_t>>(std::move(job));
}

Coro<absl::Status> File::Close() {
  if (file_ == nullptr) co_return absl::OkStatus();
  auto job = [file = std::move(file_)]() mutable {
    // A job that still uses it will be the one that closes it.
    return file.use_count() == 1 ? file->Close() : absl::OkStatus();
  };
  file_ = nullptr;
  co_return co_await OnThread<absl::Status>(std::move(job));
}

Coro<absl::StatusOr<std::string>> ReadFile(std::string path) {
  using Text = absl::StatusOr<std::string>;
  auto job = [path = std::move(path)]() -> Text {
    absl::StatusOr<std::shared_ptr<OpenFile>> file = OpenFile::Open(path, FileMode::kRead, 0);
    if (!file.ok()) return file.status();
    return (*file)->Read(/*offset=*/-1, File::kAll);
  };
  co_return co_await OnThread<Text>(std::move(job));
}

Coro<absl::Status> WriteFile(std::string path, std::string data) {
  auto job = [path = std::move(path), data = std::move(data)]() -> absl::Status {
    absl::StatusOr<std::shared_ptr<OpenFile>> file = OpenFile::Open(path, FileMode::kWrite, 0666);
    if (!file.ok()) return file.status();
    absl::Status written = (*file)->Write(/*offset=*/-1, data);
    absl::Status closed = (*file)->Close();
    written.Update(closed);
    return written;
  };
  co_return co_await OnThread<absl::Status>(std::move(job));
}

namespace internal {
namespace {

// How much is read at a time if it is not known how much there is.
constexpr size_t kPortion = size_t{64} * 1024;

// Where the next bytes are after so many; at the position it moves by itself.
int64_t Behind(int64_t offset, size_t count) {
  return offset < 0 ? -1 : offset + static_cast<int64_t>(count);
}

}  // namespace

OpenFile::~OpenFile() {
  if (handle_ != kInvalidHandle) CloseNative(handle_);
}

absl::Status OpenFile::Error(int64_t result, const std::string& what) const {
  if (!name_.empty()) return ErrnoStatus(result, absl::StrCat(what, " ", name_));
  return ErrnoStatus(result, absl::StrCat(what, " descriptor ", handle_));
}

absl::StatusOr<std::shared_ptr<OpenFile>> OpenFile::Open(const std::string& path, FileMode mode,
                                                         int permissions) {
  if (path.find('\0') != std::string::npos) {
    return absl::InvalidArgumentError("open a file: its path has a NUL inside");
  }
  absl::StatusOr<NativeHandle> handle = OpenNative(path, mode, permissions);
  if (!handle.ok()) return handle.status();
  return std::make_shared<OpenFile>(*handle, path);
}

absl::StatusOr<std::string> OpenFile::Read(int64_t offset, size_t count) const {
  std::string text;
  // What there is, if that is known, and room to see that there is no more.
  size_t expected = kPortion;
  const bool is_regular = IsRegular();
  if (const int64_t size = is_regular ? NativeSize() : -1; size >= 0) {
    const int64_t rest = size - std::max<int64_t>(offset, 0);
    expected = rest > 0 ? static_cast<size_t>(rest) + 1 : 1;
  }
  const bool takes_what_comes = count != File::kAll && offset < 0 && !is_regular;
  while (text.size() < count) {
    const size_t before = text.size();
    const size_t portion = std::min(std::max(expected, size_t{1}), count - before);
    text.resize(before + portion);
    const int64_t got = ReadSome(Behind(offset, before), &text[before], portion);
    if (got < 0) return Error(got, "read");
    text.resize(before + static_cast<size_t>(got));
    if (got == 0 || takes_what_comes) break;
    expected = std::max(expected - std::min(expected, static_cast<size_t>(got)), kPortion);
  }
  return text;
}

absl::Status OpenFile::Write(int64_t offset, const std::string& data) const {
  size_t written = 0;
  while (written < data.size()) {
    const int64_t count =
        WriteSome(Behind(offset, written), data.data() + written, data.size() - written);
    if (count < 0) {
      return Error(count, absl::StrCat("write (", written, " of ", data.size(), " bytes)"));
    }
    written += static_cast<size_t>(count);
  }
  return absl::OkStatus();
}

absl::Status OpenFile::Sync() const {
  const int64_t result = SyncNative();
  return result < 0 ? Error(result, "sync") : absl::OkStatus();
}

absl::StatusOr<int64_t> OpenFile::Size() const {
  const int64_t size = NativeSize();
  if (size < 0) return Error(size, "get the size of");
  return size;
}

absl::Status OpenFile::Close() {
  if (handle_ == kInvalidHandle) return absl::OkStatus();
  const int64_t result = CloseNative(std::exchange(handle_, kInvalidHandle));
  return result < 0 ? Error(result, "close") : absl::OkStatus();
}

}  // namespace internal
}  // namespace weft

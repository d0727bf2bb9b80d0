// Copyright 2026 The weft Authors.
// SPDX-License-Identifier: Apache-2.0

#include "weft/net/file.h"

#include <cerrno>

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

}  // namespace weft

// Copyright 2026 The weft Authors.
// SPDX-License-Identifier: Apache-2.0

#ifndef WEFT_NET_FILE_H_
#define WEFT_NET_FILE_H_

#include <cstddef>
#include <cstdint>
#include <limits>
#include <memory>
#include <string>
#include <utility>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/synchronization/mutex.h"
#include "weft/core/coro.h"
#include "weft/poller/native_handle.h"

namespace weft {
namespace internal {

class OpenFile;

}  // namespace internal

// How a file is opened.
enum class FileMode {
  kRead,       // One that exists.
  kReadWrite,  // One that exists.
  kWrite,      // What was in it is gone; made if it is not there.
  kAppend,     // Each write goes to the end; made if it is not there.
  kCreate,     // As kWrite, but it must not be there yet.
};

// File
//
// A file whose reads and writes do not hold up the loop: no kernel says when a file is
// ready, so each is a job of the loop's default executor, and waits there for the
// disk.
//
//   absl::StatusOr<File> file = co_await File::Open("/etc/hosts");
//   if (!file.ok()) co_return file.status();
//   absl::StatusOr<std::string> text = co_await file->Read();
//
// What a job works on is its own: one that is cancelled goes on until the disk has
// answered, and its result is dropped; a write may have been made or not. Closing is
// safe at any time: the descriptor goes with the last job. A file may be used by
// several tasks; of reads and writes at the position, the order is that of the threads.
//
// Errors: the kernel's, with the path. RuntimeError "no running event loop".
// Threads: belongs to the loop's thread.
// Python: a file with asyncio.to_thread(); asyncio has none.
class File {
 public:
  static constexpr size_t kAll = std::numeric_limits<size_t>::max();

  File() = default;  // None: all is EBADF.

  // `permissions` are those of a file that is made, before the umask.
  static Coro<absl::StatusOr<File>> Open(std::string path, FileMode mode = FileMode::kRead,
                                         int permissions = 0666);

  // Takes over a descriptor: of a file, a pipe, a terminal. `name` is how messages call
  // it. One that is non-blocking gives UNAVAILABLE (EAGAIN) instead of waiting.
  static File Adopt(NativeHandle handle, std::string name = "");

  explicit operator bool() const { return static_cast<bool>(file_); }
  // kInvalidHandle: none.
  NativeHandle handle() const;

  // Up to `count` bytes from the position on, which moves behind them; fewer at the
  // end, and of a pipe what there is. kAll: up to the end.
  Coro<absl::StatusOr<std::string>> Read(size_t count = kAll) const;

  // The same from `offset` on; the position stays.
  Coro<absl::StatusOr<std::string>> ReadAt(int64_t offset, size_t count = kAll) const;

  // All of `data`, at the position, which moves behind it; or from `offset` on.
  Coro<absl::Status> Write(std::string data) const;
  Coro<absl::Status> WriteAt(int64_t offset, std::string data) const;

  // Makes sure that what was written survives a power failure.
  Coro<absl::Status> Sync() const;

  Coro<absl::StatusOr<int64_t>> Size() const;

  // Closes it, and says what the system says; a network's disk may only now know that
  // it is full. The destructor closes too.
  Coro<absl::Status> Close();

  // -- For weft's own parts.
  explicit File(std::shared_ptr<internal::OpenFile> file) : file_(std::move(file)) {}
  const std::shared_ptr<internal::OpenFile>& file() const { return file_; }

 private:
  std::shared_ptr<internal::OpenFile> file_;
};

// All that is in the file at `path`.
Coro<absl::StatusOr<std::string>> ReadFile(std::string path);

// Makes `data` all that is in it.
Coro<absl::Status> WriteFile(std::string path, std::string data);

namespace internal {

// A descriptor and its name, and what blocks. Closes it.
//
// Threads: any; one object may be used by several at a time.
class OpenFile {
 public:
  OpenFile(NativeHandle handle, std::string name) : handle_(handle), name_(std::move(name)) {}
  OpenFile(const OpenFile&) = delete;
  ~OpenFile();

  static absl::StatusOr<std::shared_ptr<OpenFile>> Open(const std::string& path, FileMode mode,
                                                        int permissions);

  NativeHandle handle() const { return handle_; }
  const std::string& name() const { return name_; }

  // `offset` -1: at the position.
  absl::StatusOr<std::string> Read(int64_t offset, size_t count) const;
  absl::Status Write(int64_t offset, const std::string& data) const;
  absl::Status Sync() const;
  absl::StatusOr<int64_t> Size() const;
  // REQUIRES: nobody else uses it.
  absl::Status Close();

  // Whether these bytes can be read without waiting for a disk, as far as the system
  // says; yes if it does not.
  bool IsCached(int64_t offset, size_t count) const;
  // Makes that so.
  void Prefetch(int64_t offset, size_t count) const;

 private:
  absl::Status Error(int64_t result, const std::string& what) const;

  // The system's part. Each returns >= 0 or a negated errno.
  static absl::StatusOr<NativeHandle> OpenNative(const std::string& path, FileMode mode,
                                                 int permissions);
  // One call: how many bytes, 0 at the end of what is read.
  int64_t ReadSome(int64_t offset, char* data, size_t size) const;
  int64_t WriteSome(int64_t offset, const char* data, size_t size) const;
  int64_t SyncNative() const;
  int64_t NativeSize() const;
  // Whether its size is that of what is in it: it is no pipe, and no terminal.
  bool IsRegular() const;
  static int64_t CloseNative(NativeHandle handle);

  NativeHandle handle_;
  const std::string name_;
  // Windows has no read that leaves the position alone: it is put back under this lock.
  mutable absl::Mutex position_mutex_;
};

}  // namespace internal
}  // namespace weft

#endif  // WEFT_NET_FILE_H_

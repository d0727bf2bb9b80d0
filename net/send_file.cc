// Copyright 2026 The weft Authors.
// SPDX-License-Identifier: Apache-2.0

#include "weft/net/send_file.h"

#include <algorithm>
#include <cerrno>
#include <string>
#include <utility>

#include "absl/strings/str_cat.h"
#include "weft/core/closure.h"
#include "weft/core/errors.h"
#include "weft/core/no_throw.h"
#include "weft/core/sleep.h"
#include "weft/loop/event_loop.h"
#include "weft/net/errno_status.h"
#include "weft/net/socket_awaiter.h"

namespace weft {
namespace {

using internal::IntrusivePtr;
using internal::OpenFile;
using internal::SocketState;

// How much the kernel is asked to send at a time: few calls, and the others' turn in
// between.
constexpr int64_t kPortion = int64_t{256} * 1024;
// How much is read at a time where the kernel does not help.
constexpr size_t kReadPortion = size_t{64} * 1024;

// Until the socket can be written to.
class WritableAwaiter final : public internal::SocketAwaiter<WritableAwaiter> {
 public:
  explicit WritableAwaiter(const IntrusivePtr<SocketState>& socket)
      : SocketAwaiter(IntrusivePtr<SocketState>(socket)) {}
  WritableAwaiter(WritableAwaiter&& other) noexcept : WritableAwaiter(other.socket_) {}

  void Prepare() { PrepareWaitWritable(socket_->handle(), kWaitAgain); }
  bool Stays() const { return false; }
  int64_t Take() { return result; }
};

bool NeedsFallback(int64_t result) {
  return result == -EINVAL || result == -ENOSYS || result == -EOPNOTSUPP || result == -ESPIPE;
}

// Whether the connection is lost; else the file could not be read, or somebody has closed
// either of the two.
bool IsLost(int64_t result) {
  switch (-result) {
    case EPIPE:
    case ENOTCONN:
    case ETIMEDOUT:
      return true;
    default:
      // ECONNRESET and its like, and all that the network has to say.
      return absl::ErrnoToStatusCode(static_cast<int>(-result)) == absl::StatusCode::kUnavailable;
  }
}

// How a part of a file was sent, as far as the kernel did it.
struct Progress {
  int64_t sent = 0;
  int64_t result = 0;  // Why it ended: 0 at the end of the file or of the part.
};

Coro<Progress> SendByKernel(IntrusivePtr<SocketState> socket, std::shared_ptr<OpenFile> file,
                            SendFileOptions options) {
  Progress progress;
  bool is_fetched = false;
  while (progress.sent < options.count) {
    if (!socket->is_open()) {
      progress.result = -EBADF;
      break;
    }
    const int64_t offset = options.offset + progress.sent;
    const auto portion = static_cast<size_t>(std::min(kPortion, options.count - progress.sent));
    if (!is_fetched && !file->IsCached(offset, portion)) {
      const auto job = [file, offset, portion] { file->Prefetch(offset, portion); };
      Future<void> read = GetRunningLoop().RunInExecutor(nullptr, job);
      co_await std::move(read);
      is_fetched = true;  // Or cannot be.
      continue;
    }
    is_fetched = false;
    progress.result = socket->api()->SendFile(socket->handle(), file->handle(), offset, portion);
    if (progress.result == 0) break;
    if (progress.result > 0) {
      progress.sent += std::exchange(progress.result, 0);
      co_await Yield();
      continue;
    }
    if (progress.result != -EAGAIN) break;
    progress.result = 0;
    WritableAwaiter writable(socket);
    const int64_t waited = co_await std::move(writable);
    if (waited < 0) {
      progress.result = waited;
      break;
    }
  }
  co_return progress;
}

// Where a file goes to: one of the two.
struct Sink {
  explicit Sink(StreamWriter* to) : writer(to) {}
  explicit Sink(Socket* to) : socket(to) {}

  Coro<absl::Status> Write(std::string data) {
    if (socket != nullptr) co_return co_await socket->SendAll(data);
    writer->Write(data);
    co_return co_await writer->Drain();
  }

  StreamWriter* writer = nullptr;
  Socket* socket = nullptr;
};

// Goes on where the kernel has given up, after `sent` bytes.
Coro<absl::StatusOr<int64_t>> SendByHand(const File& file, SendFileOptions options, int64_t sent,
                                         Sink sink) {
  bool has_position = true;
  while (sent < options.count) {
    const auto portion =
        static_cast<size_t>(std::min(static_cast<int64_t>(kReadPortion), options.count - sent));
    Coro<absl::StatusOr<std::string>> read =
        has_position ? file.ReadAt(options.offset + sent, portion) : file.Read(portion);
    absl::StatusOr<std::string> data = co_await std::move(read);
    if (ErrnoOf(data.status()) == ESPIPE && has_position && options.offset == 0) {
      has_position = false;  // A pipe, or the like.
      continue;
    }
    if (!data.ok()) co_return data.status();
    if (data->empty()) break;
    const auto size = static_cast<int64_t>(data->size());
    absl::Status written = co_await sink.Write(*std::move(data));
    if (!written.ok()) co_return written;
    sent += size;
  }
  co_return sent;
}

Coro<absl::StatusOr<int64_t>> Send(IntrusivePtr<SocketState> socket, const File& file,
                                   SendFileOptions options, Sink sink) {
  if (!file) co_return ErrnoStatus(-EBADF, "send a file that is not open");
  Progress progress;
  progress.result = -EOPNOTSUPP;
  const bool is_plain = sink.writer == nullptr || !sink.writer->state()->filter();
  if (is_plain) progress = co_await SendByKernel(socket, file.file(), options);
  if (progress.result == 0) co_return progress.sent;
  if (!NeedsFallback(progress.result)) {
    absl::Status error = ErrnoStatus(progress.result, socket->Describe("send a file", "to"));
    // The kernel says it once; who writes to the stream later has to hear of it too.
    if (sink.writer != nullptr && IsLost(progress.result)) sink.writer->state()->FailWrite(error);
    co_return error;
  }
  if (!options.fallback) {
    co_return absl::UnimplementedError(absl::StrCat("send a file: the kernel does not send ",
                                                    file.file()->name(),
                                                    " by itself, and no fallback is allowed"));
  }
  co_return co_await SendByHand(file, options, progress.sent, sink);
}

// Waits until nothing is unsent.
Coro<absl::Status> DrainAll(StreamWriter& writer) {
  const std::pair<size_t, size_t> marks = writer.GetWriteBufferLimits();
  writer.SetWriteBufferLimits(0, 0);
  Outcome<absl::Status> drained = co_await NoThrow(writer.Drain());
  writer.SetWriteBufferLimits(marks.second, marks.first);
  co_return std::move(drained).value();
}

void Check(const SendFileOptions& options) {
  if (options.offset < 0) {
    throw ValueError(
        absl::StrCat("offset must be a non-negative integer (got ", options.offset, ")"));
  }
  if (options.count <= 0) {
    throw ValueError(absl::StrCat("count must be a positive integer (got ", options.count, ")"));
  }
}

Coro<absl::StatusOr<int64_t>> SendBehind(StreamWriter& writer, const File& file,
                                         SendFileOptions options) {
  if (writer.IsClosing()) {
    absl::Status lost = writer.state()->CloseStatus();
    if (!lost.ok()) co_return lost;
    co_return ErrnoStatus(-EBADF, writer.socket().state()->Describe("send a file", "to"));
  }
  absl::Status drained = co_await DrainAll(writer);
  if (!drained.ok()) co_return drained;
  absl::StatusOr<int64_t> sent =
      co_await Send(writer.socket().state(), file, options, Sink(&writer));
  if (!sent.ok()) co_return sent;
  drained = co_await DrainAll(writer);
  if (!drained.ok()) co_return drained;
  co_return sent;
}

}  // namespace

Coro<absl::StatusOr<int64_t>> SendFile(StreamWriter& writer, const File& file,
                                       SendFileOptions options) {
  Check(options);
  return SendBehind(writer, file, options);
}

Coro<absl::StatusOr<int64_t>> SendFile(Socket& socket, const File& file, SendFileOptions options) {
  Check(options);
  if (!socket.state()) throw ValueError("socket: there is none");
  return Send(socket.state(), file, options, Sink(&socket));
}

}  // namespace weft

// Copyright 2026 The weft Authors.
// SPDX-License-Identifier: Apache-2.0

#include "weft/net/pipe.h"

#include <algorithm>
#include <cerrno>

#include "weft/core/errors.h"
#include "weft/core/sleep.h"
#include "weft/net/errno_status.h"

namespace weft {
namespace internal {
namespace {

// No kernel reports that a named pipe was opened at its other end; so that is asked
// for, more and more seldom.
constexpr absl::Duration kFirstPause = absl::Milliseconds(1);
constexpr absl::Duration kLongestPause = absl::Milliseconds(50);

IntrusivePtr<StreamState> MakeState(PipeEnd end, size_t limit) {
  if (limit == 0) throw ValueError("Limit cannot be <= 0");
  IntrusivePtr<SocketState> file(new SocketState(GetRunningLoop(), end.handle));
  return IntrusivePtr<StreamState>(
      new StreamState(Socket(std::move(file)), limit, std::move(end.one_way)));
}

PipeOptions Named(const std::string& path, size_t limit) {
  PipeOptions options;
  options.limit = limit;
  options.name = path;
  return options;
}

}  // namespace

StreamReader MakePipeReader(PipeEnd end, size_t limit) {
  return StreamReader(MakeState(std::move(end), limit));
}

StreamWriter MakePipeWriter(PipeEnd end) {
  return StreamWriter(MakeState(std::move(end), kDefaultStreamLimit));
}

PipeOptions StandardStream(const char* name) {
  PipeOptions options;
  options.borrow = true;
  options.name = name;
  return options;
}

}  // namespace internal

using internal::PipeEnd;

Coro<absl::StatusOr<StreamReader>> ConnectReadPipe(NativeHandle descriptor, PipeOptions options) {
  if (options.limit == 0) throw ValueError("Limit cannot be <= 0");
  absl::StatusOr<PipeEnd> end = internal::PreparePipeEnd(descriptor, /*to_read=*/true, options);
  if (!end.ok()) co_return end.status();
  co_return internal::MakePipeReader(*std::move(end), options.limit);
}

Coro<absl::StatusOr<StreamWriter>> ConnectWritePipe(NativeHandle descriptor, PipeOptions options) {
  absl::StatusOr<PipeEnd> end = internal::PreparePipeEnd(descriptor, /*to_read=*/false, options);
  if (!end.ok()) co_return end.status();
  co_return internal::MakePipeWriter(*std::move(end));
}

Coro<absl::StatusOr<Pipe>> OpenPipe(PipeOptions options) {
  if (options.limit == 0) throw ValueError("Limit cannot be <= 0");
  options.borrow = false;
  absl::StatusOr<internal::RawPipe> raw = internal::OpenRawPipe();
  if (!raw.ok()) co_return raw.status();
  absl::StatusOr<PipeEnd> read_end = internal::PreparePipeEnd(raw->read_end, true, options);
  absl::StatusOr<PipeEnd> write_end = internal::PreparePipeEnd(raw->write_end, false, options);
  if (!read_end.ok() || !write_end.ok()) {
    internal::CloseRaw(raw->read_end);
    internal::CloseRaw(raw->write_end);
    co_return read_end.ok() ? write_end.status() : read_end.status();
  }
  co_return Pipe(internal::MakePipeReader(*std::move(read_end), options.limit),
                 internal::MakePipeWriter(*std::move(write_end)));
}

Coro<absl::StatusOr<StreamReader>> OpenNamedPipeReader(std::string path, NamedPipeOptions options) {
  if (options.limit == 0) throw ValueError("Limit cannot be <= 0");
  absl::StatusOr<NativeHandle> opened =
      internal::OpenNamedPipe(path, /*to_read=*/true, options.keep_open);
  if (!opened.ok()) co_return opened.status();
  absl::StatusOr<PipeEnd> end =
      internal::PreparePipeEnd(*opened, /*to_read=*/true, internal::Named(path, options.limit));
  if (!end.ok()) {
    internal::CloseRaw(*opened);
    co_return end.status();
  }
  co_return internal::MakePipeReader(*std::move(end), options.limit);
}

Coro<absl::StatusOr<StreamWriter>> OpenNamedPipeWriter(std::string path, NamedPipeOptions options) {
  absl::Duration pause = internal::kFirstPause;
  while (true) {
    absl::StatusOr<NativeHandle> opened =
        internal::OpenNamedPipe(path, /*to_read=*/false, /*keep_open=*/false);
    if (opened.ok()) {
      absl::StatusOr<PipeEnd> end = internal::PreparePipeEnd(
          *opened, /*to_read=*/false, internal::Named(path, kDefaultStreamLimit));
      if (end.ok()) co_return internal::MakePipeWriter(*std::move(end));
      internal::CloseRaw(*opened);
      co_return end.status();
    }
    const bool is_waiting = ErrnoOf(opened.status()) == ENXIO && options.wait_for_reader;
    if (!is_waiting) co_return opened.status();
    co_await Sleep(pause);
    pause = std::min(2 * pause, internal::kLongestPause);
  }
}

}  // namespace weft

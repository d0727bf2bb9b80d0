// Copyright 2026 The weft Authors.
// SPDX-License-Identifier: Apache-2.0

#ifndef WEFT_NET_PIPE_H_
#define WEFT_NET_PIPE_H_

#include <cstddef>
#include <string>
#include <utility>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "weft/core/coro.h"
#include "weft/net/connection.h"
#include "weft/net/stream_state.h"
#include "weft/poller/native_handle.h"

namespace weft {

// Pipes as streams. Each goes one way: the reader closes what it reads, the writer,
// when all that was written has left, what it writes to; and to the other side that
// is the end. What is said here of pipes holds for terminals and other devices, for
// regular files, and for one direction of a stream socket.
//
//   absl::StatusOr<StreamReader> input = co_await OpenStandardInput();
//   while (true) {
//     absl::StatusOr<std::string> line = co_await input->ReadLine();
//     if (!line.ok() || line->empty()) break;
//     ...
//   }
//
// A write to a pipe that nobody reads is EPIPE, and never the signal. A writer is
// told without writing: it IsClosing(), and WaitClosed() returns.
//
// A regular file is read and written at once, and the loop waits for the disk, as no
// readiness kernel has anything else: what is not in memory is read by ToThread().

struct PipeOptions {
  PipeOptions() {}

  size_t limit = kDefaultStreamLimit;  // Of a reader.

  // The descriptor stays the caller's: it is left open, and as far as the system
  // lets us it stays blocking for others who have it, by opening what it refers to
  // once more. (Where that is impossible, as for a socket, it is made non-blocking
  // until the stream is closed.)
  bool borrow = false;

  std::string name;  // For messages; empty: "pipe 5".
};

// Awaitable of StatusOr<StreamReader>: reads from a descriptor, which belongs to the
// reader from then on, and becomes non-blocking; unless it is borrowed, or this fails.
// Errors: the kernel's, with EBADF for a number that is not open, or not in this
// direction; ValueError for a negative one. UNIMPLEMENTED on Windows, if the handle was
// not opened for overlapped I/O; and so it is for what CreatePipe() has made, for
// consoles and, most often, for the standard streams.
// Python: loop.connect_read_pipe().
Coro<absl::StatusOr<StreamReader>> ConnectReadPipe(NativeHandle descriptor,
                                                   PipeOptions options = PipeOptions());

// Awaitable of StatusOr<StreamWriter>: the same for writing.
// Python: loop.connect_write_pipe().
Coro<absl::StatusOr<StreamWriter>> ConnectWritePipe(NativeHandle descriptor,
                                                    PipeOptions options = PipeOptions());

// What the program was started with, borrowed. Whoever else writes to the standard
// output (printf) is not held up; what both write may interleave. Closing the stream
// does not close the descriptor, so whoever reads it sees no end before that of the
// program.
inline Coro<absl::StatusOr<StreamReader>> OpenStandardInput();
inline Coro<absl::StatusOr<StreamWriter>> OpenStandardOutput();
inline Coro<absl::StatusOr<StreamWriter>> OpenStandardError();

struct Pipe {
  Pipe(StreamReader reader, StreamWriter writer)
      : reader(std::move(reader)), writer(std::move(writer)) {}

  StreamReader reader;
  StreamWriter writer;
};

// Awaitable of StatusOr<Pipe>: a new one, neither end of which is inherited by child
// processes.
Coro<absl::StatusOr<Pipe>> OpenPipe(PipeOptions options = PipeOptions());

// Makes a named pipe. Errors: ALREADY_EXISTS if there is something at `path`;
// UNIMPLEMENTED on Windows, where it would be no file.
// Python: os.mkfifo().
absl::Status MakeNamedPipe(const std::string& path, int mode = 0600);

struct NamedPipeOptions {
  NamedPipeOptions() {}

  size_t limit = kDefaultStreamLimit;

  // Reading: goes on when the last writer has gone, and waits for others, for ever.
  bool keep_open = false;

  // Writing: waits until somebody has opened it to read; else that nobody has is
  // NOT_FOUND [ENXIO].
  bool wait_for_reader = true;
};

// Awaitable of StatusOr<StreamReader>: reads from the named pipe at `path`. Does not
// wait for a writer; the first read does.
// Errors: the kernel's, with the path; FAILED_PRECONDITION if it is no named pipe.
Coro<absl::StatusOr<StreamReader>> OpenNamedPipeReader(
    std::string path, NamedPipeOptions options = NamedPipeOptions());

// Awaitable of StatusOr<StreamWriter>: the same for writing. Cancelling it leaves
// nothing behind.
Coro<absl::StatusOr<StreamWriter>> OpenNamedPipeWriter(
    std::string path, NamedPipeOptions options = NamedPipeOptions());

namespace internal {

// A descriptor as a stream that goes one way needs it.
struct PipeEnd {
  NativeHandle handle = kInvalidHandle;  // The stream's own.
  OneWay one_way;
};

// Makes `descriptor` ready to be used, or a stand-in for it.
absl::StatusOr<PipeEnd> PreparePipeEnd(NativeHandle descriptor, bool to_read,
                                       const PipeOptions& options);

struct RawPipe {
  NativeHandle read_end = kInvalidHandle;
  NativeHandle write_end = kInvalidHandle;
};

// Which end is not for a stream: another program gets it, which knows nothing of
// pollers, or a File.
enum class LentEnd { kNone, kReader, kWriter, kBoth };

// Not inherited by child processes; blocking, where that is up to the file.
absl::StatusOr<RawPipe> OpenRawPipe(LentEnd lent = LentEnd::kNone);
void CloseRaw(NativeHandle handle);

// Opens the named pipe at `path`, non-blocking.
absl::StatusOr<NativeHandle> OpenNamedPipe(const std::string& path, bool to_read, bool keep_open);

// Streams over what was prepared, in `loop`.
StreamReader MakePipeReader(PipeEnd end, size_t limit);
StreamWriter MakePipeWriter(PipeEnd end);

PipeOptions StandardStream(const char* name);

}  // namespace internal

inline Coro<absl::StatusOr<StreamReader>> OpenStandardInput() {
  return ConnectReadPipe(0, internal::StandardStream("standard input"));
}
inline Coro<absl::StatusOr<StreamWriter>> OpenStandardOutput() {
  return ConnectWritePipe(1, internal::StandardStream("standard output"));
}
inline Coro<absl::StatusOr<StreamWriter>> OpenStandardError() {
  return ConnectWritePipe(2, internal::StandardStream("standard error"));
}

}  // namespace weft

#endif  // WEFT_NET_PIPE_H_

// Copyright 2026 The weft Authors.
// SPDX-License-Identifier: Apache-2.0

#ifndef WEFT_NET_CONNECTION_H_
#define WEFT_NET_CONNECTION_H_

#include <coroutine>
#include <cstddef>
#include <cstdint>
#include <exception>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "absl/base/optimization.h"
#include "absl/container/inlined_vector.h"
#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/types/span.h"
#include "weft/core/intrusive_ptr.h"
#include "weft/core/outcome.h"
#include "weft/core/waiter.h"
#include "weft/net/socket.h"
#include "weft/net/socket_address.h"
#include "weft/net/stream_state.h"
#include "weft/net/tls_provider.h"

namespace weft {
namespace internal {

// Throws what a read deserves while another waits (`is_second`), or in a task of
// another loop.
[[noreturn]] void ThrowMisuse(const char* name, bool is_second);

// What the awaiters of a reader are made of. `Derived` has IsSatisfied() and
// Take(), what the await yields.
template <class Derived>
class [[nodiscard]] StreamReadAwaiter : public StreamRead {
 public:
  bool await_ready() { return !stream_->has_reader() && derived().IsSatisfied(); }

  template <class Promise>
  bool await_suspend(std::coroutine_handle<Promise> handle) {
    if (ABSL_PREDICT_FALSE(!CheckUsable(handle.promise().task))) return false;
    return stream_->Read(this, std::coroutine_handle<CoroPromise>::from_promise(handle.promise()));
  }

  auto await_resume() {
    stream_->ForgetReader(this);
    EndOrThrow();
    ThrowIfFailed();
    return derived().Take();
  }

  auto await_outcome() {
    stream_->ForgetReader(this);
    Outcome<decltype(std::declval<Derived&>().Take())> outcome;
    if (End()) {
      outcome.SetCancelled(task()->cancelled_error());
      return outcome;
    }
    try {
      ThrowIfFailed();
      outcome.Emplace(derived().Take());
    } catch (...) {
      outcome.SetCurrentException();
    }
    return outcome;
  }

 protected:
  StreamReadAwaiter(const IntrusivePtr<StreamState>& stream, const char* name)
      : StreamRead(stream), name_(name) {}
  StreamReadAwaiter(StreamReadAwaiter&& other) noexcept  // Before it is awaited.
      : StreamRead(std::move(other.stream_)), name_(other.name_) {}

  Derived& derived() { return static_cast<Derived&>(*this); }

 private:
  bool CheckUsable(TaskState* task) {
    is_foreign_ = stream_->core() != task->scheduler();
    is_second_ = stream_->has_reader();
    return !is_foreign_ && !is_second_;
  }
  void ThrowIfFailed() {
    if (ABSL_PREDICT_FALSE(is_foreign_ || is_second_)) ThrowMisuse(name_, is_second_);
    if (ABSL_PREDICT_FALSE(stream_->read_exception() != nullptr)) {
      std::rethrow_exception(stream_->read_exception());
    }
  }

  const char* name_;
  bool is_foreign_ = false;
  bool is_second_ = false;
};

class [[nodiscard]] FillAwaiter final : public StreamReadAwaiter<FillAwaiter> {
 public:
  FillAwaiter(const IntrusivePtr<StreamState>& stream, size_t at_least)
      : StreamReadAwaiter(stream, "fill"), at_least_(at_least) {}
  FillAwaiter(FillAwaiter&& other) noexcept = default;

  bool IsSatisfied() override { return stream_->buffer().size() >= at_least_ || stream_->ended(); }
  bool TakesAnything() const override { return at_least_ <= stream_->buffer().size() + 1; }
  absl::StatusOr<absl::Span<const char>> Take() {
    if (ABSL_PREDICT_FALSE(!stream_->read_error().ok())) return stream_->read_error();
    const std::string_view unread = stream_->buffer().unread();
    return absl::MakeConstSpan(unread.data(), unread.size());
  }

 private:
  size_t at_least_;
};

class [[nodiscard]] ReadIntoAwaiter final : public StreamReadAwaiter<ReadIntoAwaiter> {
 public:
  ReadIntoAwaiter(const IntrusivePtr<StreamState>& stream, absl::Span<char> into)
      : StreamReadAwaiter(stream, "read"), into_(into) {}
  ReadIntoAwaiter(ReadIntoAwaiter&& other) noexcept = default;

  bool IsSatisfied() override {
    return !stream_->buffer().empty() || stream_->ended() || into_.empty();
  }
  bool TakesAnything() const override { return true; }
  absl::StatusOr<size_t> Take();

 private:
  absl::Span<char> into_;
};

class [[nodiscard]] ReadAwaiter final : public StreamReadAwaiter<ReadAwaiter> {
 public:
  ReadAwaiter(const IntrusivePtr<StreamState>& stream, int64_t count)
      : StreamReadAwaiter(stream, "read"), count_(count) {}
  ReadAwaiter(ReadAwaiter&& other) noexcept = default;

  bool IsSatisfied() override {
    if (count_ < 0) return stream_->ended();
    return !stream_->buffer().empty() || stream_->ended() || count_ == 0;
  }
  bool TakesAnything() const override { return count_ >= 0; }
  absl::StatusOr<std::string> Take();

 private:
  int64_t count_;  // Negative: all, up to the end.
};

class [[nodiscard]] ReadExactlyAwaiter final : public StreamReadAwaiter<ReadExactlyAwaiter> {
 public:
  ReadExactlyAwaiter(const IntrusivePtr<StreamState>& stream, size_t count)
      : StreamReadAwaiter(stream, "readexactly"), count_(count) {}
  ReadExactlyAwaiter(ReadExactlyAwaiter&& other) noexcept = default;

  bool IsSatisfied() override { return stream_->buffer().size() >= count_ || stream_->ended(); }
  absl::StatusOr<std::string> Take();

 private:
  size_t count_;
};

class [[nodiscard]] ReadUntilAwaiter final : public StreamReadAwaiter<ReadUntilAwaiter> {
 public:
  using Separators = absl::InlinedVector<std::string, 1>;

  ReadUntilAwaiter(const IntrusivePtr<StreamState>& stream, Separators separators,
                   bool is_line = false);
  ReadUntilAwaiter(ReadUntilAwaiter&& other) noexcept = default;

  bool IsSatisfied() override;
  absl::StatusOr<std::string> Take();

 private:
  absl::Status Overrun(std::string_view what, size_t to_drop);

  Separators separators_;
  bool is_line_;
  bool is_found_ = false;
  bool is_overrun_ = false;
  size_t shortest_;
  size_t longest_;
  size_t searched_ = 0;  // No separator begins before.
  size_t match_begin_ = 0;
  size_t match_end_ = 0;
};

// A handshake of TLS that was begun, and is read to its end. One that is not, as it
// is cancelled or was never awaited, leaves nothing to be used: it aborts.
class [[nodiscard]] HandshakeAwaiter final : public StreamReadAwaiter<HandshakeAwaiter> {
 public:
  // `begun`: whether it could be.
  HandshakeAwaiter(const IntrusivePtr<StreamState>& stream, absl::Status begun)
      : StreamReadAwaiter(stream, "start_tls"), begun_(std::move(begun)) {}
  HandshakeAwaiter(HandshakeAwaiter&& other) noexcept = default;
  ~HandshakeAwaiter() {
    if (stream_ && begun_.ok() && !is_over_) stream_->Abort();
  }

  bool IsSatisfied() override {
    return !begun_.ok() || stream_->filter()->is_ready() || stream_->ended();
  }
  absl::Status Take();

 private:
  absl::Status begun_;
  bool is_over_ = false;
};

class [[nodiscard]] DrainAwaiter final : public Waiter {
 public:
  explicit DrainAwaiter(const IntrusivePtr<StreamState>& stream) : stream_(stream) {}
  DrainAwaiter(DrainAwaiter&& other) noexcept : stream_(std::move(other.stream_)) {}

  bool await_ready() { return stream_->is_drained(); }
  template <class Promise>
  bool await_suspend(std::coroutine_handle<Promise> handle) {
    if (ABSL_PREDICT_FALSE(stream_->core() != handle.promise().task->scheduler())) {
      ThrowMisuse("drain", /*is_second=*/false);
    }
    stream_->Flush();
    if (stream_->is_paused()) {
      has_waited_ = true;
      stream_->drainers().Wait(this, handle);
      return true;
    }
    int& budget = stream_->core()->inline_budget;
    if (ABSL_PREDICT_TRUE(budget > 0)) {
      --budget;
      return false;
    }
    Begin(handle);
    Wake();
    return true;
  }
  absl::Status await_resume() {
    Unlink();
    EndOrThrow();
    if (ABSL_PREDICT_FALSE(stream_->read_exception() != nullptr)) {
      std::rethrow_exception(stream_->read_exception());
    }
    return stream_->DrainStatus(has_waited_);
  }
  Outcome<absl::Status> await_outcome();

 private:
  IntrusivePtr<StreamState> stream_;
  bool has_waited_ = false;
};

class [[nodiscard]] WaitClosedAwaiter final : public Waiter {
 public:
  explicit WaitClosedAwaiter(const IntrusivePtr<StreamState>& stream) : stream_(stream) {}
  WaitClosedAwaiter(WaitClosedAwaiter&& other) noexcept : stream_(std::move(other.stream_)) {}

  bool await_ready() { return stream_->is_closed(); }
  template <class Promise>
  void await_suspend(std::coroutine_handle<Promise> handle) {
    stream_->closers().Wait(this, handle);
    stream_->CloseIfFailed();
  }
  absl::Status await_resume() {
    Unlink();
    EndOrThrow();
    return stream_->CloseStatus();
  }
  Outcome<absl::Status> await_outcome();

 private:
  IntrusivePtr<StreamState> stream_;
};

}  // namespace internal

// How much a reader searches for a separator before it gives up.
inline constexpr size_t kDefaultStreamLimit = 64 * 1024;

// StreamReader
//
// The receiving half of a connection, or all of a pipe that is read; that is closed
// with its reader (pipe.h). It receives only while somebody waits, so a
// peer that sends faster than it is read is held up by the kernel; and it holds
// memory only while bytes are unread.
//
//   absl::StatusOr<std::string> line = co_await reader.ReadLine();
//   if (!line.ok() || line->empty()) co_return;   // An error, or the end.
//
// What is there already is returned without suspending. Without copying, and
// without allocating:
//
//   absl::StatusOr<absl::Span<const char>> unread = co_await reader.Fill();
//   if (!unread.ok() || unread->empty()) co_return;
//   reader.Consume(Parse(*unread));
//
// A read that is cancelled, or fails before it has what it wants, takes nothing:
// what has come is there for the next.
//
// One task may read at a time: while it waits, another's read throws
// RuntimeError "read() called while another coroutine is already waiting for
// incoming data".
//
// Errors: what the kernel says, as UNAVAILABLE for a connection that was reset;
// from then on every read fails with it. The peer closing is not an error. If this
// side has closed the connection, that is the end of the stream too.
//
// Threads: belongs to the loop's thread.
// Python: asyncio.StreamReader; but incomplete reads leave what had come.
class StreamReader {
 public:
  StreamReader() = default;  // None: good for nothing but to be assigned to.
  StreamReader(StreamReader&&) noexcept = default;
  StreamReader& operator=(StreamReader&& other) noexcept {
    if (this != &other) {
      CloseIfOwner();
      state_ = std::move(other.state_);
    }
    return *this;
  }
  ~StreamReader() { CloseIfOwner(); }

  explicit operator bool() const { return static_cast<bool>(state_); }

  // Awaitable of StatusOr<std::string>: up to `count` bytes, at least one unless
  // the stream is at its end or `count` is 0. Negative: all that comes until the
  // end.
  internal::ReadAwaiter Read(int64_t count = -1) { return internal::ReadAwaiter(state_, count); }

  // Awaitable of StatusOr<std::string>: as many bytes as that.
  // Errors: OUT_OF_RANGE "3 bytes read on a total of 5 expected bytes" if the
  // stream ends before; ValueError if `count` is negative.
  internal::ReadExactlyAwaiter ReadExactly(int64_t count);

  // Awaitable of StatusOr<std::string>: up to and with `separator`; with several,
  // the shortest text that ends with one of them.
  // Errors: OUT_OF_RANGE if the stream ends before; RESOURCE_EXHAUSTED if more than
  // the limit comes first, and all of it stays readable; ValueError if a separator
  // is empty, or there is none.
  internal::ReadUntilAwaiter ReadUntil(std::string_view separator);
  internal::ReadUntilAwaiter ReadUntil(const std::vector<std::string>& separators);

  // Awaitable of StatusOr<std::string>: a line with its "\n"; the last may have
  // none. Empty at the end of the stream.
  // Errors: RESOURCE_EXHAUSTED if it is longer than the limit; then the line, or as
  // much of it as has come, is dropped.
  internal::ReadUntilAwaiter ReadLine();

  // Awaitable of StatusOr<size_t>: up to `into.size()` bytes, at least one; 0 at
  // the end of the stream.
  internal::ReadIntoAwaiter ReadInto(absl::Span<char> into) {
    return internal::ReadIntoAwaiter(state_, into);
  }

  // Awaitable of StatusOr<Span<const char>>: all that is unread, when that is
  // `at_least` bytes, or fewer at the end of the stream. Valid until the next call
  // on this reader. Takes nothing: Consume() does.
  internal::FillAwaiter Fill(size_t at_least = 1) {
    return internal::FillAwaiter(state_, at_least);
  }

  // Takes the first `count` of the unread bytes. REQUIRES: there are so many.
  void Consume(size_t count);

  // What is unread and needs no waiting; as Fill().
  absl::Span<const char> Unread() const {
    const std::string_view unread = state_->buffer().unread();
    return absl::MakeConstSpan(unread.data(), unread.size());
  }

  // The end has come, and everything before it was read.
  bool AtEof() const { return state_->eof() && state_->buffer().empty(); }

  // From now on every read throws `error`, also the one that waits, and Drain().
  void SetException(std::exception_ptr error) { state_->SetReadException(std::move(error)); }

  // -- For weft's own parts.
  explicit StreamReader(internal::IntrusivePtr<internal::StreamState> state)
      : state_(std::move(state)) {}

 private:
  void CloseIfOwner() {
    if (state_ && state_->is_read_only()) state_->Abort();
  }

  internal::IntrusivePtr<internal::StreamState> state_;
};

// StreamWriter
//
// The sending half of a connection, and the one that owns it: when it is
// destroyed, what was written is still sent, and then the connection closed. Nobody
// waits for that, and the end of the loop cuts it short: what has to be out before
// the program ends is out when Close() was called and WaitClosed() has returned.
//
//   writer.Write("hello ");
//   writer.Write("world\n");
//   absl::Status sent = co_await writer.Drain();
//
// Write() does not wait, and keeps a copy of what cannot leave yet. Small writes
// leave together, in one call: at Drain(), at the end of the round, at Close(), or
// when they are many. A program that writes much waits in Drain(), which returns
// at once while no more than 64 KiB are unsent, and else when that has fallen to
// 16 KiB.
//
// When the connection is lost, Drain() says why, now and ever after, and what is
// written is dropped. What the peer had sent before can still be read. SIGPIPE is
// never raised.
//
// Threads: belongs to the loop's thread.
// Python: asyncio.StreamWriter.
class StreamWriter {
 public:
  StreamWriter() = default;  // None: good for nothing but to be assigned to.
  StreamWriter(StreamWriter&&) noexcept = default;
  StreamWriter& operator=(StreamWriter&& other) noexcept {
    if (this != &other) {
      if (state_) state_->Close();
      state_ = std::move(other.state_);
    }
    return *this;
  }
  ~StreamWriter() {
    if (state_) state_->Close();
  }

  explicit operator bool() const { return static_cast<bool>(state_); }

  // Errors: RuntimeError "Cannot call write() after write_eof()".
  void Write(std::string_view data);

  // All of them, in order: strings, or what converts to a string_view.
  template <class Range>
  void WriteLines(const Range& lines) {
    for (const auto& line : lines) Write(line);
  }

  // Sends the end of the stream behind all that was written; reading goes on. Does
  // nothing the second time.
  // Errors: RuntimeError unless CanWriteEof().
  void WriteEof();
  // With TLS as it was before 1.3 one cannot: there the end is that of both
  // directions.
  bool CanWriteEof() const { return !state_->filter() || state_->filter()->CanWriteEof(); }

  // Awaitable of Status: waits while too much is unsent.
  // Errors: why the connection was lost.
  internal::DrainAwaiter Drain() { return internal::DrainAwaiter(state_); }

  // Closes the connection when all that was written has been sent. The reader is
  // at its end then. Does nothing the second time.
  void Close() { state_->Close(); }

  // Closes it now, and drops what was not sent.
  void Abort() { state_->Abort(); }

  // Closed, about to be, or lost.
  bool IsClosing() const { return state_->is_closing(); }

  // Awaitable of Status: until the connection is closed. One that was lost is
  // closed by it, and the status is why it was lost.
  internal::WaitClosedAwaiter WaitClosed() { return internal::WaitClosedAwaiter(state_); }

  // When Drain() waits: from more than `high` unsent bytes on, until there are no
  // more than `low`; without it, a quarter of that.
  // Errors: ValueError if `low` is greater than `high`.
  void SetWriteBufferLimits(size_t high, size_t low);
  void SetWriteBufferLimits(size_t high) { SetWriteBufferLimits(high, high / 4); }
  // {low, high}.
  std::pair<size_t, size_t> GetWriteBufferLimits() const {
    return {state_->low_mark(), state_->high_mark()};
  }
  // From here on by TLS: a client if `tls` is a client's context, else a server. What
  // was written before is sent as it is. Awaitable of Status: when the handshake is
  // done. Meanwhile nobody may read; what is written waits. If it fails or is
  // cancelled, the connection is lost.
  //
  //   writer.Write("STARTTLS\r\n");
  //   ... read the answer ...
  //   absl::Status secured = co_await writer.StartTls(context, options);
  //
  // Errors: UNAUTHENTICATED if the peer's certificate is not accepted,
  // PERMISSION_DENIED if ours is not, FAILED_PRECONDITION if the two cannot agree, or
  // if there are unread bytes, which somebody may have slipped in without TLS;
  // DEADLINE_EXCEEDED; what the kernel says. RuntimeError if it was begun before,
  // after WriteEof(), or while somebody reads; ValueError for a context or options that
  // do not fit.
  // Python: StreamWriter.start_tls().
  internal::HandshakeAwaiter StartTls(const TlsProvider& tls,
                                      const StartTlsOptions& options = StartTlsOptions());

  // What was agreed upon; none without TLS, and while the handshake goes on.
  // Python: get_extra_info("ssl_object").
  std::optional<TlsInfo> tls_info() const;

  // How many bytes are unsent.
  size_t GetWriteBufferSize() const { return state_->unsent(); }

  // A peer that is too slow for a program that does not wait: a write after which
  // more than `limit` bytes were unsent drops the connection instead, and Drain()
  // returns RESOURCE_EXHAUSTED. Default: no limit.
  void SetHardLimit(size_t limit) { state_->SetHardLimit(limit); }

  // Whom it talks to, and from where; none if the kernel does not say. The peer is
  // known after it has gone, too.
  SocketAddress PeerAddress() const;
  SocketAddress LocalAddress() const;

  // The same by asyncio's names, as text: "peername", "sockname", "socket", which is the
  // descriptor, and with TLS "cipher" and "peercert". None for any other name.
  // Python: writer.get_extra_info(), whose types are those of the functions above.
  std::optional<std::string> GetExtraInfo(std::string_view name) const;

  // For its options. Sending, receiving and closing is the stream's.
  Socket& socket() { return state_->socket(); }
  const Socket& socket() const { return state_->socket(); }

  // -- For weft's own parts.
  explicit StreamWriter(internal::IntrusivePtr<internal::StreamState> state)
      : state_(std::move(state)) {}
  const internal::IntrusivePtr<internal::StreamState>& state() const { return state_; }

 private:
  internal::IntrusivePtr<internal::StreamState> state_;
};

// Both halves.
struct Connection {
  Connection() {}
  Connection(StreamReader r, StreamWriter w) : reader(std::move(r)), writer(std::move(w)) {}

  StreamReader reader;
  StreamWriter writer;
};

// Makes streams of a socket that is connected. `limit` is how much ReadUntil() and
// ReadLine() search.
// Errors: ValueError if `limit` is 0.
Connection ToConnection(Socket socket, size_t limit = kDefaultStreamLimit);

}  // namespace weft

#endif  // WEFT_NET_CONNECTION_H_

// Copyright 2026 The weft Authors.
// SPDX-License-Identifier: Apache-2.0

#include "weft/net/connection.h"

#include <algorithm>
#include <cstring>

#include "absl/base/macros.h"
#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "weft/core/errors.h"

namespace weft {
namespace internal {
namespace {

// How a stream ended before a read had what it wanted.
absl::Status Incomplete(size_t read, std::string_view expected) {
  return absl::OutOfRangeError(
      absl::StrCat(read, " bytes read on a total of ", expected, " expected bytes"));
}

std::string TakeFront(StreamState* stream, size_t count) {
  std::string text(stream->buffer().unread().substr(0, count));
  stream->buffer().Consume(text.size());
  return text;
}

}  // namespace

void ThrowMisuse(const char* name, bool is_second) {
  if (!is_second) throw RuntimeError("the stream belongs to a different event loop");
  throw RuntimeError(
      absl::StrCat(name, "() called while another coroutine is already waiting for incoming data"));
}

absl::StatusOr<size_t> ReadIntoAwaiter::Take() {
  if (ABSL_PREDICT_FALSE(!stream_->read_error().ok())) return stream_->read_error();
  const std::string_view unread = stream_->buffer().unread();
  const size_t count = std::min(unread.size(), into_.size());
  if (count == 0) return count;
  std::memcpy(into_.data(), unread.data(), count);
  stream_->buffer().Consume(count);
  return count;
}

absl::StatusOr<std::string> ReadAwaiter::Take() {
  if (ABSL_PREDICT_FALSE(!stream_->read_error().ok())) return stream_->read_error();
  return TakeFront(stream_.get(),
                   count_ < 0 ? std::string_view::npos : static_cast<size_t>(count_));
}

absl::StatusOr<std::string> ReadExactlyAwaiter::Take() {
  if (ABSL_PREDICT_FALSE(!stream_->read_error().ok())) return stream_->read_error();
  const size_t unread = stream_->buffer().size();
  if (unread < count_) return Incomplete(unread, absl::StrCat(count_));
  return TakeFront(stream_.get(), count_);
}

ReadUntilAwaiter::ReadUntilAwaiter(const IntrusivePtr<StreamState>& stream, Separators separators,
                                   bool is_line)
    : StreamReadAwaiter(stream, "readuntil"),
      separators_(std::move(separators)),
      is_line_(is_line) {
  if (separators_.empty()) throw ValueError("Separator should contain at least one element");
  shortest_ = longest_ = separators_.front().size();
  for (const std::string& separator : separators_) {
    shortest_ = std::min(shortest_, separator.size());
    longest_ = std::max(longest_, separator.size());
  }
  if (shortest_ == 0) throw ValueError("Separator should be at least one-byte string");
}

bool ReadUntilAwaiter::IsSatisfied() {
  const std::string_view unread = stream_->buffer().unread();
  if (unread.size() - searched_ >= shortest_) {
    for (const std::string& separator : separators_) {
      const size_t begin = unread.find(separator, searched_);
      if (begin == std::string_view::npos) continue;
      const size_t end = begin + separator.size();
      if (!is_found_ || end < match_end_) {
        is_found_ = true;
        match_begin_ = begin;
        match_end_ = end;
      }
    }
    if (is_found_) return true;
    // A separator may have begun within the last bytes.
    searched_ = unread.size() + 1 - std::min(unread.size() + 1, longest_);
    is_overrun_ = searched_ > stream_->limit();
  }
  return is_overrun_ || stream_->ended();
}

absl::StatusOr<std::string> ReadUntilAwaiter::Take() {
  if (ABSL_PREDICT_FALSE(!stream_->read_error().ok())) return stream_->read_error();
  if (is_found_) {
    if (match_begin_ <= stream_->limit()) return TakeFront(stream_.get(), match_end_);
    return Overrun("Separator is found, but chunk is longer than limit", match_end_);
  }
  const size_t unread = stream_->buffer().size();
  if (is_overrun_) return Overrun("Separator is not found, and chunk exceed the limit", unread);
  if (is_line_) return TakeFront(stream_.get(), unread);
  return Incomplete(unread, "undefined");
}

// A line that is too long is dropped, so that the next can be read.
absl::Status ReadUntilAwaiter::Overrun(std::string_view what, size_t to_drop) {
  if (is_line_) stream_->buffer().Consume(to_drop);
  return absl::ResourceExhaustedError(absl::StrCat(what, " (", stream_->limit(), " bytes)"));
}

absl::Status HandshakeAwaiter::Take() {
  is_over_ = true;
  if (!begun_.ok()) return begun_;
  if (stream_->filter()->is_ready()) return absl::OkStatus();
  const absl::Status& error = stream_->read_error();
  if (error.ok()) {
    return absl::CancelledError(
        absl::StrCat(stream_->DescribeHandshake(), ": closed on this side"));
  }
  const std::string what = stream_->DescribeHandshake();
  if (absl::StartsWith(error.message(), what)) return error;
  return absl::Status(error.code(), absl::StrCat(what, ": ", error.message()));
}

Outcome<absl::Status> DrainAwaiter::await_outcome() {
  Outcome<absl::Status> outcome;
  Unlink();
  if (End()) {
    outcome.SetCancelled(task()->cancelled_error());
  } else if (stream_->read_exception() != nullptr) {
    outcome.SetError(stream_->read_exception());
  } else {
    outcome.Emplace(stream_->DrainStatus(has_waited_));
  }
  return outcome;
}

Outcome<absl::Status> WaitClosedAwaiter::await_outcome() {
  Outcome<absl::Status> outcome;
  Unlink();
  if (End()) {
    outcome.SetCancelled(task()->cancelled_error());
  } else {
    outcome.Emplace(stream_->CloseStatus());
  }
  return outcome;
}

}  // namespace internal

using internal::ReadUntilAwaiter;

internal::ReadExactlyAwaiter StreamReader::ReadExactly(int64_t count) {
  if (count < 0) throw ValueError("readexactly size can not be less than zero");
  return internal::ReadExactlyAwaiter(state_, static_cast<size_t>(count));
}

ReadUntilAwaiter StreamReader::ReadUntil(std::string_view separator) {
  return ReadUntilAwaiter(state_, ReadUntilAwaiter::Separators(1, std::string(separator)));
}

ReadUntilAwaiter StreamReader::ReadUntil(const std::vector<std::string>& separators) {
  return ReadUntilAwaiter(state_,
                          ReadUntilAwaiter::Separators(separators.begin(), separators.end()));
}

ReadUntilAwaiter StreamReader::ReadLine() {
  return ReadUntilAwaiter(state_, ReadUntilAwaiter::Separators(1, std::string(1, '\n')),
                          /*is_line=*/true);
}

void StreamReader::Consume(size_t count) {
  ABSL_HARDENING_ASSERT(count <= state_->buffer().size());
  state_->buffer().Consume(count);
}

void StreamWriter::Write(std::string_view data) {
  if (state_->wrote_eof()) throw RuntimeError("Cannot call write() after write_eof()");
  if (!data.empty()) state_->Write(data);
}

void StreamWriter::WriteEof() {
  if (!CanWriteEof()) throw RuntimeError("write_eof() does not work with TLS before 1.3");
  state_->WriteEof();
}

internal::HandshakeAwaiter StreamWriter::StartTls(const TlsProvider& tls,
                                                  const StartTlsOptions& options) {
  internal::CheckTls(tls, tls.factory() != nullptr && tls.factory()->is_server(), options);
  return internal::HandshakeAwaiter(state_, state_->StartTls(tls.factory(), options));
}

std::optional<TlsInfo> StreamWriter::tls_info() const {
  const internal::StreamFilter* const filter = state_->filter();
  if (filter == nullptr || !filter->is_ready()) return std::nullopt;
  return filter->Info();
}

void StreamWriter::SetWriteBufferLimits(size_t high, size_t low) {
  if (low > high) {
    throw ValueError(absl::StrCat("high (", high, ") must be >= low (", low, ") must be >= 0"));
  }
  state_->SetMarks(low, high);
}

SocketAddress StreamWriter::PeerAddress() const {
  return state_->socket().PeerAddress().value_or(SocketAddress());
}

SocketAddress StreamWriter::LocalAddress() const {
  return state_->socket().LocalAddress().value_or(SocketAddress());
}

std::optional<std::string> StreamWriter::GetExtraInfo(std::string_view name) const {
  if (name == "peername") return PeerAddress().ToString();
  if (name == "sockname") return LocalAddress().ToString();
  if (name == "socket") return absl::StrCat(socket().handle());
  const std::optional<TlsInfo> tls = tls_info();
  if (tls.has_value() && name == "cipher") return tls->cipher;
  if (tls.has_value() && name == "peercert") return tls->peer_certificate_pem;
  return std::nullopt;
}

Connection ToConnection(Socket socket, size_t limit) {
  if (limit == 0) throw ValueError("Limit cannot be <= 0");
  internal::IntrusivePtr<internal::StreamState> state(
      new internal::StreamState(std::move(socket), limit));
  return Connection(StreamReader(state), StreamWriter(state));
}

}  // namespace weft

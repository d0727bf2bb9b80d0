// Copyright 2026 The weft Authors.
// SPDX-License-Identifier: Apache-2.0

#include "weft/net/stream_state.h"

#include <algorithm>
#include <cerrno>
#include <limits>
#include <new>

#include "absl/strings/str_cat.h"
#include "absl/time/time.h"
#include "weft/core/errors.h"
#include "weft/core/log.h"
#include "weft/net/connection.h"
#include "weft/net/errno_status.h"

namespace weft::internal {
namespace {

// asyncio's.
constexpr size_t kDefaultHighMark = 64 * 1024;
constexpr size_t kDefaultLowMark = kDefaultHighMark / 4;
constexpr int kWritesBeforeWarning = 5;

// How many sends may go on at once before the others have their turn.
constexpr int kSendsInARow = 16;

// How long the peer has to receive an alert.
constexpr absl::Duration kAlertLinger = absl::Seconds(5);

// Whether a write has failed as the connection broke off: not as the peer, having said all it
// had to say, hears no more (EPIPE).
bool IsBrokenOff(const absl::Status& error) {
  return absl::IsUnavailable(error) || ErrnoOf(error) == ETIMEDOUT;
}

}  // namespace

StreamState::ReceiveOperation::ReceiveOperation(StreamState* owner)
    : Operation([](Runnable* runnable) {
        static_cast<ReceiveOperation*>(runnable)->stream->OnReceive();
      }),
      stream(owner) {}

StreamState::Outgoing::SendOperation::SendOperation(StreamState* owner)
    : Operation(
          [](Runnable* runnable) { static_cast<SendOperation*>(runnable)->stream->OnSent(); }),
      stream(owner) {}

StreamState::Outgoing::FlushRunnable::FlushRunnable(StreamState* owner)
    : Runnable([](Runnable* runnable) { static_cast<FlushRunnable*>(runnable)->stream->Flush(); }),
      stream(owner) {}

constinit const StreamState::Limits StreamState::kUsualLimits = {
    {}, kDefaultStreamLimit, kDefaultLowMark, kDefaultHighMark, std::numeric_limits<size_t>::max()};

StreamState::StreamState(Socket socket, size_t limit) : socket_(std::move(socket)) {
  if (limit != kUsualLimits.read) OwnLimits().read = limit;
  AddRef();  // Its own, until it is closed.
  if (!core()->closed) loop().owned().Watch(&at_loop_close_);
}

StreamState::StreamState(Socket socket, size_t limit, OneWay one_way)
    : StreamState(std::move(socket), limit) {
  one_way_ = std::make_unique<OneWayPart>(std::move(one_way), this);
  if (one_way_->is_reader || !one_way_->is_pipe) return;
  Operation& gone = one_way_->reader_gone;
  gone.PrepareWaitReadable(socket_.handle());
  if (loop().poller().Start(&gone) == StartResult::kDone) core()->ready.PushBack(&gone);
}

StreamState::~StreamState() = default;

StreamState::OneWayPart::OneWayPart(OneWay one_way, StreamState* owner)
    : OneWay(std::move(one_way)), reader_gone(owner) {}

StreamState::OneWayPart::GoneOperation::GoneOperation(StreamState* owner)
    : Operation([](Runnable* runnable) {
        static_cast<GoneOperation*>(runnable)->stream->OnReaderGone();
      }),
      stream(owner) {}

std::string StreamState::Describe(std::string_view what, std::string_view preposition) const {
  if (one_way_ == nullptr) return socket_.state()->Describe(what, preposition);
  return absl::StrCat(what, " ", preposition, " ", one_way_->name);
}

// -- Reading.

Cancellable::Step StreamRead::BeginCancel(const std::exception_ptr& error) {
  if (is_waiting()) stream_->StopReading(this);
  return Wait::BeginCancel(error);
}

void StreamState::SetReadException(std::exception_ptr error) {
  read_exception_ = std::move(error);
  EndRead();
}

StartResult StreamState::StartReceive() {
  receive_.PrepareRecvLent(socket_.handle(), is_file() ? kAnyFile : 0);
  return loop().poller().Start(&receive_);
}

// Fetches what a finished `receive_` has announced. False if that was a false
// alarm, and it waits again.
bool StreamState::Fetch() {
  Slab slab;
  if (receive_.result >= 0 &&
      loop().poller().FetchLent(&receive_, &loop().slab_pool(), &slab) == StartResult::kPending) {
    return false;
  }
  if (receive_.result < 0) {
    FailRead(receive_.result);
  } else if (receive_.result == 0 && IsBrokenOff(write_error_)) {
    // The kernel tells of a reset once, and a write has heard of it. What looks like the end
    // of the stream is none: there may have been more.
    if (read_error_.ok()) read_error_ = write_error_;
  } else if (ABSL_PREDICT_FALSE(filter_ != nullptr)) {
    filter_->Receive(std::move(slab), static_cast<size_t>(receive_.result));
  } else if (receive_.result == 0) {
    eof_ = true;
  } else {
    try {
      buffer_.Append(std::move(slab), static_cast<size_t>(receive_.result));
    } catch (const std::bad_alloc&) {
      FailRead(-ENOMEM);
    }
  }
  return true;
}

bool StreamState::Read(StreamRead* read, std::coroutine_handle<CoroPromise> handle) {
  int& budget = core()->inline_budget;
  // One that was cancelled may still be the kernel's, or about to run, and will do
  // for this one.
  while (receive_.state != Operation::State::kPending && !receive_.is_linked()) {
    if (StartReceive() == StartResult::kPending) break;
    if (budget <= 0) {
      // There is something, but the others come first.
      core()->ready.PushBack(&receive_);
      break;
    }
    --budget;
    if (!Fetch()) break;
    if (read->IsSatisfied()) return false;
  }
  reader_ = read;
  read->Begin(handle);
  return true;
}

void StreamState::OnReceive() {
  if (is_fetch_due_) return FetchAndRun();
  if (receive_.result == -ECANCELED && std::exchange(receive_cancelled_, false)) {
    // The end of an old request. Somebody may have come meanwhile.
    if (IsAwaited() || is_lingering_) ReceiveMore();
    return;
  }
  receive_cancelled_ = false;
  if (ABSL_PREDICT_FALSE(is_lingering_)) return OnLateReceive();
  if (!IsAwaited()) {
    // It was cancelled too late for the kernel. What there is stays there.
    if (!is_down_) loop().poller().Cancel(&receive_);
    return;
  }
  // In debug mode a callback that runs a task would be taken for it.
  if (receive_.result >= 0 && receive_.message_flags == kWithKernel && filter_ == nullptr &&
      reader_->TakesAnything() && !core()->guarded) {
    return FetchLater();
  }
  if (!Fetch()) return;
  if (reader_->IsSatisfied()) return EndRead();
  ReceiveMore();
}

// The reader counts as woken from here on, and `receive_` stands in the queue for its task.
void StreamState::FetchLater() {
  is_fetch_due_ = true;
  reader_->WakeByProxy();
  core()->ready.PushBack(&receive_);
}

void StreamState::FetchAndRun() {
  is_fetch_due_ = false;
  StreamRead* const reader = reader_;
  if (reader == nullptr) return loop().poller().Cancel(&receive_);
  if (!Fetch()) {
    // A false alarm.
    if (!reader->task()->has_pending_cancellation() && !reader->IsSatisfied()) {
      return reader->WaitOn();
    }
    StopReading(reader);
  }
  // Debug mode, if it has been turned on since, is told of each step of a task.
  if (ABSL_PREDICT_FALSE(core()->guarded)) return reader->task()->Wake();
  static_cast<Runnable*>(reader->task())->Run();
}

// The connection goes down: what had come before that is the reader's, whose task stands in
// the queue by itself from now on.
void StreamState::FetchNow() {
  if (!std::exchange(is_fetch_due_, false)) return;
  if (reader_ == nullptr || !receive_.is_linked() || core()->closed) return;
  receive_.ReplaceBy(static_cast<Runnable*>(reader_->task()));
  static_cast<void>(Fetch());  // False alarm or not, the end is near.
}

// More is needed, and may be there already: but the others come first.
void StreamState::ReceiveMore() {
  if (StartReceive() == StartResult::kDone) core()->ready.PushBack(&receive_);
}

void StreamState::EndRead() {
  if (reader_ != nullptr) reader_->Wake();
}

void StreamState::FailRead(int64_t result) {
  if (result == -ECANCELED || result == -EBADF) {
    // Closed on this side, which is no error to whoever reads.
    eof_ = true;
    return;
  }
  read_error_ = ErrnoStatus(result, Describe(is_file() ? "read" : "receive", "from"));
}

void StreamState::StopReading(StreamRead* read) {
  if (reader_ != read) return;
  reader_ = nullptr;
  if (core()->closed) return;
  // A kernel that completes may take a while, and may deliver; that stays with
  // the operation, for the next reader.
  receive_cancelled_ = receive_.state == Operation::State::kPending;
  loop().poller().Cancel(&receive_);
  if (receive_.state == Operation::State::kPending) return;
  receive_cancelled_ = false;
  receive_.Unlink();
}

StreamState::Limits& StreamState::OwnLimits() {
  if (limits_ == nullptr) limits_ = std::make_unique<Limits>(kUsualLimits);
  return *limits_;
}

// -- Writing.

// False if there is no memory: then writing has failed.
bool StreamState::MakeOutgoing() {
  if (outgoing_ != nullptr) return true;
  try {
    outgoing_.reset(new Outgoing(this));
    return true;
  } catch (const std::bad_alloc&) {
    FailWrite(ErrnoStatus(-ENOMEM, Describe("write", "to")));
    return false;
  }
}

void StreamState::Write(std::string_view data) {
  if (!write_error_.ok() || is_closing_) {
    if (writes_after_loss_ < kWritesBeforeWarning && ++writes_after_loss_ == kWritesBeforeWarning) {
      Log(LogSeverity::kWarning, absl::StrCat(Describe("write", "to"), ": the connection is lost"));
    }
    return;
  }
  if (core()->closed) return;
  const size_t most = limits().unsent;
  if (data.size() > most - std::min(most, unsent())) {
    FailWrite(absl::ResourceExhaustedError(
        absl::StrCat(Describe("write", "to"), ": more than ", most,
                     " bytes would be unsent; the connection was dropped")));
    return Abort();
  }
  SlabPool& pool = loop().slab_pool();
  WriteQueue& queue = ABSL_PREDICT_TRUE(filter_ == nullptr) ? queue_ : filter_->written_;
  while (!data.empty() && write_error_.ok()) {
    // What is large leaves in portions, as long as the kernel takes them.
    const size_t portion = is_sending_
                               ? data.size()
                               : std::min(data.size(), Outgoing::kPiecesACall * pool.slab_size());
    if (!queue.Append(data.substr(0, portion), &pool)) {
      return FailWrite(ErrnoStatus(-ENOMEM, Describe("write", "to")));
    }
    data.remove_prefix(portion);
    if (!is_sending_ && queue.size() >= pool.slab_size()) Flush();
  }
  if (is_sending_) {
    outgoing_->send.is_quiet = false;  // What has come now leaves when that has ended.
    return UpdatePaused();
  }
  if (queue.empty() || !MakeOutgoing() || outgoing_->flush.is_linked()) return;
  loop().round_end().PushBack(&outgoing_->flush);
}

void StreamState::WriteEof() {
  if (wrote_eof_ || is_closing_) return;
  wrote_eof_ = true;
  if (one_way_ != nullptr) return Close();
  Flush();
}

void StreamState::Flush() {
  if (outgoing_ != nullptr) outgoing_->flush.Unlink();
  if (core()->closed) return;
  if (is_sending_) {
    outgoing_->send.is_quiet = false;
  } else {
    SendQueue();
  }
}

// REQUIRES: nothing is being sent.
void StreamState::SendQueue() {
  for (int sends = 0; HasOutput(); ++sends) {
    if (!MakeOutgoing()) return;
    Operation& send = outgoing_->send;
    Buffer* const pieces = outgoing_->pieces;
    if (sends >= kSendsInARow) {
      send.result = 0;
      is_sending_ = true;
      core()->ready.PushBack(&send);
      return UpdatePaused();
    }
    const size_t count = queue_.Pieces(pieces, Outgoing::kPiecesACall);
    if (is_file()) {
      send.PrepareWrite(socket_.handle(), pieces[0].data, pieces[0].size);
    } else if (count == 1) {
      send.PrepareSend(socket_.handle(), pieces[0].data, pieces[0].size);
    } else {
      send.PrepareSendMsg(socket_.handle(), pieces, count);
    }
    if (loop().poller().Start(&send) == StartResult::kPending) {
      is_sending_ = true;
      UpdatePaused();
      size_t asked = 0;
      if (send.opcode == OpCode::kSendMsg) {
        for (size_t i = 0; i < send.buffers.count; ++i) asked += pieces[i].size;
      } else {
        asked = send.buffer.size;
      }
      // Nothing comes after it. The loop need not wake to hear that all is well.
      send.is_quiet = asked == queue_.size() && filter_ == nullptr && !is_file() && !is_paused_ &&
                      !is_closing_ && !wrote_eof_;
      return;
    }
    if (!FinishSend()) return;
  }
  // (A filter that fails while it is asked for more sends an alert.)
  if (ABSL_PREDICT_TRUE(!is_sending_)) AfterSending();
}

// False if the connection is lost.
bool StreamState::FinishSend() {
  const int64_t result = outgoing_->send.result;
  if (result < 0) {
    if (filter_ != nullptr && filter_->is_end_alone_ && is_closing_) {
      // The peer has gone before it could be told that all has been said.
      GoDown();
      return false;
    }
    FailWrite(ErrnoStatus(result, Describe(is_file() ? "write" : "send", "to")));
    return false;
  }
  queue_.Consume(static_cast<size_t>(result));
  return true;
}

void StreamState::OnSent() {
  is_sending_ = false;
  if (is_down_ || !write_error_.ok()) return ClearOutgoing();
  if (FinishSend()) SendQueue();
}

void StreamState::FailWrite(absl::Status error) {
  if (write_error_.ok()) write_error_ = std::move(error);
  if (!is_sending_) {
    ClearOutgoing();
  } else if (!core()->closed) {
    loop().poller().Cancel(&outgoing_->send);  // The queue is the kernel's until then.
  }
  if (filter_ != nullptr) filter_->written_.Clear();
  is_paused_ = false;
  drainers_.WakeAll();
  if (is_closing_) GoDown();
}

void StreamState::UpdatePaused() {
  const size_t size = unsent();
  if (is_paused_) {
    if (size > low_mark()) return;
    is_paused_ = false;
    drainers_.WakeAll();
  } else if (size > high_mark() && write_error_.ok()) {
    is_paused_ = true;
  }
}

// Everything has left.
void StreamState::AfterSending() {
  outgoing_.reset();
  UpdatePaused();
  if (ABSL_PREDICT_FALSE(filter_ != nullptr)) {
    if (!is_closing_ || !filter_->written_.empty()) return;
    if (filter_->has_ended_ || !read_error_.ok() || core()->closed) return GoDown();
    return Linger(filter_->shutdown_timeout_, /*is_late_an_error=*/true);
  }
  if (is_closing_) return GoDown();
  if (!wrote_eof_ || std::exchange(is_shut_, true)) return;
  const absl::Status shut = socket_.Shutdown(ShutdownHow::kWrite);
  // The peer may have gone; whoever reads will learn of that. But if the system could
  // not do it, the peer would wait for an end that never comes.
  if (shut.ok() || ErrnoOf(shut) == ENOTCONN) return;
  FailWrite(shut);
  Abort();
}

void StreamState::SetMarks(size_t low, size_t high) {
  Limits& limits = OwnLimits();
  limits.low_mark = low;
  limits.high_mark = high;
  UpdatePaused();
}

absl::Status StreamState::DrainStatus(bool has_waited) const {
  if (!read_error_.ok()) return read_error_;
  if (!write_error_.ok()) return write_error_;
  if ((is_down_ || is_lingering_) && !has_waited)
    return ErrnoStatus(-ECONNRESET, "Connection lost");
  return absl::OkStatus();
}

// -- The end.

void StreamState::Close() {
  if (is_closing_) return;
  is_closing_ = true;
  if (!write_error_.ok() || core()->closed) {
    if (filter_ == nullptr || !filter_->has_told_why_ || core()->closed) return GoDown();
    return Linger(std::min(kAlertLinger, filter_->shutdown_timeout_), /*is_late_an_error=*/false);
  }
  if (filter_ != nullptr && !filter_->is_ready_) return GoDown();
  Flush();
}

void StreamState::Abort() {
  is_closing_ = true;
  GoDown();
}

// The last reader of the pipe has closed it; or the wait for that has ended.
void StreamState::OnReaderGone() {
  if (one_way_->reader_gone.result < 0 || is_down_) return;
  FailWrite(ErrnoStatus(-EPIPE, Describe("write", "to")));
  Abort();
}

void StreamState::GoDown() {
  if (std::exchange(is_down_, true)) return;
  if (ABSL_PREDICT_FALSE(is_fetch_due_)) FetchNow();
  if (!is_sending_) ClearOutgoing();
  if (filter_ != nullptr) {
    filter_->timer_.Cancel();
    filter_->written_.Clear();
    is_lingering_ = false;
  }
  is_paused_ = false;
  drainers_.WakeAll();
  if (!socket_.is_open()) return OnClosed();
  socket_.state()->Close({[](void* self) { static_cast<StreamState*>(self)->OnClosed(); }, this});
}

// All that was pending has been given back before.
void StreamState::OnClosed() {
  is_closed_ = true;
  eof_ = true;
  if (one_way_ != nullptr) {
    one_way_->reader_gone.Unlink();
    if (one_way_->after_closing != nullptr) one_way_->after_closing();
  }
  EndRead();
  closers_.WakeAll();
  if (ConnectionOwner* owner = std::exchange(owner_, nullptr)) owner->OnConnectionLost(this);
  Release();
}

absl::Status StreamState::CloseStatus() const {
  return write_error_.ok() ? read_error_ : write_error_;
}

// -- TLS.

absl::Status StreamState::StartTls(const std::shared_ptr<const TlsFactory>& factory,
                                   const StartTlsOptions& options) {
  if (filter_ != nullptr) throw RuntimeError("start_tls() was called before");
  if (one_way_ != nullptr) throw RuntimeError("start_tls() needs a connection of both ways");
  if (has_reader()) {
    throw RuntimeError(
        "start_tls() called while another coroutine is already waiting for incoming data");
  }
  if (wrote_eof_) throw RuntimeError("Cannot call start_tls() after write_eof()");
  if (!write_error_.ok()) return write_error_;
  if (!read_error_.ok()) return read_error_;
  if (is_closing_ || core()->closed || eof_) {
    return absl::FailedPreconditionError(
        absl::StrCat(DescribeHandshake(), ": the connection is not open any more"));
  }
  if (!buffer_.empty()) {
    // Somebody in between may have put them there, to have them taken for what
    // comes by TLS.
    return absl::FailedPreconditionError(
        absl::StrCat(DescribeHandshake(), ": ", buffer_.size(),
                     " bytes that came without TLS are still to be read"));
  }
  filter_ = factory->MakeFilter(factory, this, options);
  filter_->shutdown_timeout_ = options.shutdown_timeout;
  filter_->timer_ =
      loop().CallLater(options.handshake_timeout, [this, timeout = options.handshake_timeout] {
        OnFilterFailed(absl::DeadlineExceededError(absl::StrCat(
            DescribeHandshake(), ": timed out after ", absl::FormatDuration(timeout))));
        EndRead();
      });
  filter_->Start();
  Flush();
  return absl::OkStatus();
}

void StreamState::OnFilterReady() {
  filter_->timer_.Cancel();
  if (!filter_->written_.empty()) Flush();
}

void StreamState::OnFilterFailed(absl::Status error) {
  filter_->timer_.Cancel();
  if (is_down_) return;
  if (read_error_.ok()) read_error_ = error;
  const bool has_alert = write_error_.ok() && !is_closing_ && !is_sending_ && !queue_.empty();
  if (has_alert) {
    SendQueue();
    if (!is_sending_ && queue_.empty()) {
      filter_->has_told_why_ = true;
      static_cast<void>(socket_.Shutdown(ShutdownHow::kWrite));
    }
  }
  FailWrite(std::move(error));
}

// What more the filter has to send, now that the queue is empty.
bool StreamState::Produce() {
  if (is_down_ || !write_error_.ok()) return false;
  filter_->Produce(/*ends=*/wrote_eof_ || is_closing_);
  return write_error_.ok() && !queue_.empty();
}

// All is sent; what there is to receive is what the peer has sent before it knew.
void StreamState::Linger(absl::Duration timeout, bool is_late_an_error) {
  if (std::exchange(is_lingering_, true)) return;
  filter_->timer_ = loop().CallLater(timeout, [this, timeout, is_late_an_error] {
    if (is_late_an_error && write_error_.ok()) {
      write_error_ = absl::DeadlineExceededError(absl::StrCat(
          Describe("TLS shutdown", "with"), ": timed out after ", absl::FormatDuration(timeout)));
    }
    GoDown();
  });
  eof_ = true;
  EndRead();
  if (receive_.state != Operation::State::kPending && !receive_.is_linked()) ReceiveMore();
}

void StreamState::OnLateReceive() {
  Slab slab;
  if (receive_.result >= 0 &&
      loop().poller().FetchLent(&receive_, &loop().slab_pool(), &slab) == StartResult::kPending) {
    return;
  }
  if (receive_.result > 0) {
    filter_->Receive(std::move(slab), static_cast<size_t>(receive_.result));
    if (!filter_->has_ended_ && !is_down_) return ReceiveMore();
  }
  GoDown();
}

}  // namespace weft::internal

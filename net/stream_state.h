// Copyright 2026 The weft Authors.
// SPDX-License-Identifier: Apache-2.0

#ifndef WEFT_NET_STREAM_STATE_H_
#define WEFT_NET_STREAM_STATE_H_

#include <coroutine>
#include <cstddef>
#include <cstdint>
#include <exception>
#include <memory>
#include <string>
#include <string_view>
#include <utility>

#include "absl/base/optimization.h"
#include "absl/functional/any_invocable.h"
#include "absl/status/status.h"
#include "weft/core/block_pool.h"
#include "weft/core/cancellable.h"
#include "weft/core/coro_promise.h"
#include "weft/core/intrusive_list.h"
#include "weft/core/intrusive_ptr.h"
#include "weft/core/runnable.h"
#include "weft/core/waiter.h"
#include "weft/loop/loop_owned.h"
#include "weft/net/read_buffer.h"
#include "weft/net/socket.h"
#include "weft/net/stream_filter.h"
#include "weft/net/tls_provider.h"
#include "weft/net/write_queue.h"
#include "weft/poller/operation.h"
#include "weft/sync/waiter_list.h"

namespace weft::internal {

class StreamState;

// Who has to know when a connection is down: a server.
class ConnectionOwner {
 public:
  virtual void OnConnectionLost(StreamState* stream) = 0;

 protected:
  ~ConnectionOwner() = default;
};

// One wait of one task for something to read. It lies in the awaiter.
class StreamRead : public Wait {
 public:
  explicit StreamRead(IntrusivePtr<StreamState> stream) : stream_(std::move(stream)) {}
  inline ~StreamRead();

  Step BeginCancel(const std::exception_ptr& error) override;
  std::string Description() const override {
    return was_woken() ? "its turn" : Wait::Description();
  }

 protected:
  friend class StreamState;

  // Whether what there is now is enough, or is all that there will be.
  virtual bool IsSatisfied() = 0;
  // Whether anything that comes is enough, the end or an error as well. Asked while it waits.
  virtual bool TakesAnything() const { return false; }

  IntrusivePtr<StreamState> stream_;
};

// What makes a stream that goes one way: a pipe, a terminal, a file, or one direction
// of a socket.
struct OneWay {
  bool is_reader = false;
  bool is_socket = false;
  bool is_pipe = false;
  std::string name;                          // For messages: "pipe 5", "standard input".
  absl::AnyInvocable<void()> after_closing;  // May be null.
};

// One connection: what its reader and its writer share.
//
// Reading: only while somebody waits for it. A lent receive announces that there
// is something, and when its runnable runs the bytes are fetched into a slab. So
// a connection on which nothing has come holds no buffer. Where anything is enough for
// whoever waits, and the bytes are still the kernel's, they stay there until it is the
// reader's turn, which comes a round later: so a thousand connections that are reported
// together use one slab after the other, which is hot in the cache, and not a thousand.
//
// Writing: the queue leaves by one operation at a time. What a round's callbacks
// write leaves when they have run, at Drain(), at Close(), or when it is a slab
// full, whichever comes first.
//
// Its end:
//
//           Close()                all is sent, or lost          retired
//   open -------------> closing -------------------------> down ---------> closed
//     |                                                      ^
//     +------------------------ Abort() ---------------------+
//
// A stream that goes one way has only one of the two, which owns it: the reader of a
// pipe closes it. The end of what is written to a pipe is that it is closed. That
// nobody reads it any more is noticed without writing: a wait for its write end to
// be readable ends then, and only then.
//
// TLS: a filter (stream_filter.h) changes what comes before it is in the buffer, and
// what was written before it is in the queue. At the end, when all is sent, its own
// mark of the end included, the stream lingers: it receives, and drops what it
// receives, until the peer's mark has come or a time has passed. So it does after a
// failed handshake: to close at once would be a reset, and might take from the peer
// the alert that says why.
//
//           Close()                all is sent                  the peer's end, or late
//   open -------------> closing -------------> lingering -----------------------------> down
//
// From the beginning until it is closed a connection counts as a reference to
// itself: whoever lets go of its reader and writer does not have to wait.
//
// Threads: belongs to the loop's thread.
class StreamState final : public ListNode, public PooledObject {
 public:
  StreamState(Socket socket, size_t limit);
  StreamState(Socket socket, size_t limit, OneWay one_way);
  StreamState(const StreamState&) = delete;

  void AddRef() { ++refs_; }
  void Release() {
    if (--refs_ == 0) delete this;
  }

  SchedulerCore* core() const { return socket_.state()->core(); }
  EventLoop& loop() const { return socket_.state()->loop(); }
  Socket& socket() { return socket_; }

  void set_owner(ConnectionOwner* owner) { owner_ = owner; }

  // Nothing can be written, so the reader owns it.
  bool is_read_only() const { return one_way_ != nullptr && one_way_->is_reader; }

  // For messages: "send to 127.0.0.1:80".
  std::string Describe(std::string_view what, std::string_view preposition) const;

  // -- Reading.

  ReadBuffer& buffer() { return buffer_; }
  size_t limit() const { return limits().read; }
  bool eof() const { return eof_; }
  // No more will come: the end, an error or somebody's exception.
  bool ended() const { return eof_ || !read_error_.ok() || read_exception_ != nullptr; }
  const absl::Status& read_error() const { return read_error_; }
  const std::exception_ptr& read_exception() const { return read_exception_; }
  void SetReadException(std::exception_ptr error);

  // Somebody waits, or has what it waited for and is about to take it.
  bool has_reader() const { return reader_ != nullptr; }

  // For await_suspend of `read`, which is not satisfied. False if it is by now, so
  // that the task need not suspend. REQUIRES: !has_reader().
  bool Read(StreamRead* read, std::coroutine_handle<CoroPromise> handle);

  // `read` waits no more; the kernel is told.
  void StopReading(StreamRead* read);
  // It has taken what it wanted, or is gone.
  void ForgetReader(StreamRead* read) {
    if (reader_ == read) reader_ = nullptr;
  }

  // -- Writing.

  void Write(std::string_view data);
  void WriteEof();
  bool wrote_eof() const { return wrote_eof_; }

  size_t unsent() const {
    return queue_.size() + (ABSL_PREDICT_FALSE(filter_ != nullptr) ? filter_->written_.size() : 0);
  }
  size_t low_mark() const { return limits().low_mark; }
  size_t high_mark() const { return limits().high_mark; }
  void SetMarks(size_t low, size_t high);
  void SetHardLimit(size_t limit) { OwnLimits().unsent = limit; }

  // Sends as much as the kernel takes now.
  void Flush();

  // Nothing can be sent any more, and this is why: of several the first counts.
  void FailWrite(absl::Status error);

  // Whether Drain() has nothing to do and to say.
  bool is_drained() const {
    return unsent() == 0 && !is_paused_ && !is_closing_ && write_error_.ok() && read_error_.ok() &&
           read_exception_ == nullptr;
  }
  // More is unsent than the high mark says, and not yet less than the low one.
  bool is_paused() const { return is_paused_; }
  WaiterList& drainers() { return drainers_; }
  // What Drain() returns. One that has waited was told that all is well, if nothing
  // has failed, though the connection may have been closed since.
  absl::Status DrainStatus(bool has_waited) const;

  // -- The end.

  void Close();
  void Abort();
  bool is_closing() const { return is_closing_ || !write_error_.ok(); }
  bool is_closed() const { return is_closed_; }
  WaiterList& closers() { return closers_; }
  // What WaitClosed() returns once it is closed.
  absl::Status CloseStatus() const;
  // Closes what has failed, and does nothing else.
  void CloseIfFailed() {
    if ((!write_error_.ok() || !read_error_.ok()) && !is_lingering_) Abort();
  }

  // -- TLS.

  // Begins it. REQUIRES: CheckTls() has passed.
  // Errors: FAILED_PRECONDITION if there are unread bytes, or the connection is not
  // open both ways; what else keeps it from beginning. RuntimeError if it was begun
  // before, after WriteEof(), or while somebody reads.
  absl::Status StartTls(const std::shared_ptr<const TlsFactory>& factory,
                        const StartTlsOptions& options);
  // Null: plain.
  StreamFilter* filter() const { return filter_.get(); }
  bool is_down() const { return is_down_; }

  // "TLS handshake with 127.0.0.1:443".
  std::string DescribeHandshake() const { return Describe("TLS handshake", "with"); }

  // -- For the filter.

  WriteQueue& queue() { return queue_; }
  // What it receives is to be dropped.
  bool is_lingering() const { return is_lingering_; }
  // The handshake is done.
  void OnFilterReady();
  // The peer has ended what it sends.
  void OnFilterEnded() { eof_ = true; }
  // Loses the connection. What is in the queue, an alert, is still sent if the kernel
  // takes it now.
  void OnFilterFailed(absl::Status error);

 private:
  struct ReceiveOperation final : Operation {
    explicit ReceiveOperation(StreamState* owner);
    StreamState* const stream;
  };
  // What a stream has while something is to be sent: made by the first write, and gone when
  // all has left.
  struct Outgoing final : PooledObject {
    // Large writes are sent in pieces of this many slabs a call.
    static constexpr size_t kPiecesACall = 4;

    struct FlushRunnable final : Runnable {
      explicit FlushRunnable(StreamState* owner);
      StreamState* const stream;
    };
    struct SendOperation final : Operation {
      explicit SendOperation(StreamState* owner);
      StreamState* const stream;
    };

    explicit Outgoing(StreamState* owner) : flush(owner), send(owner) {}

    FlushRunnable flush;  // At the end of the round.
    SendOperation send;
    Buffer pieces[kPiecesACall];
  };
  // What only streams that go one way have.
  struct OneWayPart : OneWay {
    OneWayPart(OneWay one_way, StreamState* owner);
    struct GoneOperation final : Operation {
      explicit GoneOperation(StreamState* owner);
      StreamState* const stream;
    } reader_gone;
  };
  // A stream that was closed, and still has something to send when its loop is
  // closed, goes down without.
  struct AtLoopClose : LoopOwned {
    explicit AtLoopClose(StreamState* owner) : stream(owner) {}
    void OnLoopClose() override { stream->Abort(); }
    StreamState* stream;
  };
  struct Limits : PooledObject {
    size_t read = 0;
    size_t low_mark = 0;
    size_t high_mark = 0;
    size_t unsent = 0;
  };
  static const Limits kUsualLimits;

  ~StreamState();

  void OnReceive();
  void FetchLater();
  void FetchAndRun();
  void FetchNow();
  void ReceiveMore();
  bool IsAwaited() const { return reader_ != nullptr && reader_->is_waiting(); }
  bool Fetch();
  StartResult StartReceive();
  void EndRead();
  void FailRead(int64_t result);

  const Limits& limits() const { return limits_ != nullptr ? *limits_ : kUsualLimits; }
  Limits& OwnLimits();

  bool MakeOutgoing();
  void OnSent();
  bool FinishSend();
  void SendQueue();
  void UpdatePaused();
  void AfterSending();
  // Drops what is to be sent. REQUIRES: the kernel reads nothing of it.
  void ClearOutgoing() {
    queue_.Clear();
    outgoing_.reset();
  }
  bool HasOutput() {
    return !queue_.empty() || (ABSL_PREDICT_FALSE(filter_ != nullptr) && Produce());
  }
  bool Produce();

  bool is_file() const { return one_way_ != nullptr && !one_way_->is_socket; }
  void OnReaderGone();

  void Linger(absl::Duration timeout, bool is_late_an_error);
  void OnLateReceive();
  void GoDown();
  void OnClosed();

  uint32_t refs_ = 0;
  bool eof_ = false;
  bool is_sending_ = false;  // `outgoing_->send` is the kernel's, or in a queue.
  bool wrote_eof_ = false;
  bool is_shut_ = false;  // The kernel was told so.
  bool is_paused_ = false;
  bool is_closing_ = false;
  bool is_lingering_ = false;
  bool is_down_ = false;  // Given to the poller to be closed.
  bool is_closed_ = false;
  bool receive_cancelled_ = false;  // The kernel was asked to end `receive_`.
  bool is_fetch_due_ = false;       // `receive_` is in the ready queue for FetchAndRun().
  uint8_t writes_after_loss_ = 0;

  Socket socket_;
  std::unique_ptr<StreamFilter> filter_;  // Null: plain.
  ConnectionOwner* owner_ = nullptr;
  std::unique_ptr<OneWayPart> one_way_;

  ReadBuffer buffer_;
  StreamRead* reader_ = nullptr;
  absl::Status read_error_;
  std::exception_ptr read_exception_;
  ReceiveOperation receive_{this};

  WriteQueue queue_;
  std::unique_ptr<Outgoing> outgoing_;  // Null: nothing is to be sent.
  std::unique_ptr<Limits> limits_;      // Null: the usual ones.
  absl::Status write_error_;
  WaiterList drainers_;
  WaiterList closers_;
  AtLoopClose at_loop_close_{this};
};

StreamRead::~StreamRead() {
  if (stream_) stream_->ForgetReader(this);
}

}  // namespace weft::internal

#endif  // WEFT_NET_STREAM_STATE_H_

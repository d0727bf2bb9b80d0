// Copyright 2026 The weft Authors.
// SPDX-License-Identifier: Apache-2.0

#ifndef WEFT_NET_STREAM_FILTER_H_
#define WEFT_NET_STREAM_FILTER_H_

#include <cstddef>

#include "absl/time/time.h"
#include "weft/core/scheduler.h"
#include "weft/net/tls_provider.h"
#include "weft/net/write_queue.h"
#include "weft/poller/slab_pool.h"

namespace weft::internal {

// What stands between a stream and its socket and changes the bytes on their way:
// TLS. It belongs to its StreamState, which asks it and which it tells (stream_state.h,
// "For the filter"); a plain connection has none, and pays a look at a null pointer.
//
//   what is written:  `written`  --Produce()-->  the stream's queue  -->  the socket
//   what comes:       the socket  -->  Receive()  -->  the stream's buffer
//
// Either may put more into the stream's queue, as a handshake or an alert.
//
//   handshake --------------> ready ---------------> failed
//       |                                              ^
//       +----------------------------------------------+
//
// Threads: belongs to the loop's thread.
class StreamFilter {
 public:
  StreamFilter() = default;
  StreamFilter(const StreamFilter&) = delete;
  virtual ~StreamFilter() = default;

  // Begins the handshake: puts what a client sends first into the queue. Once.
  virtual void Start() = 0;

  // The first `count` bytes of `slab` have come; with 0 of them, the end of what
  // comes. While the stream lingers, what they mean is dropped.
  virtual void Receive(Slab slab, size_t count) = 0;

  // Moves some of `written` into the stream's queue; when it is empty and the stream
  // `ends`, the mark that says so, once. Nothing while the handshake goes on.
  virtual void Produce(bool ends) = 0;

  // Once it is ready: whether the peer expects that this side ends and goes on
  // reading.
  virtual bool CanWriteEof() const = 0;
  virtual TlsInfo Info() const = 0;

  bool is_ready() const { return is_ready_; }    // The handshake is done.
  bool has_ended() const { return has_ended_; }  // The peer has said that no more comes.

  // What was written, and is still to be changed.
  WriteQueue& written() { return written_; }

 protected:
  friend class StreamState;

  WriteQueue written_;
  bool is_ready_ = false;
  bool has_ended_ = false;
  bool is_end_alone_ = false;  // The queue holds the mark of the end, and nothing else.

 private:
  // The stream's own.
  bool has_told_why_ = false;  // It failed, and the peer was sent an alert.
  TimerHandle timer_;          // Of the handshake, then of the end.
  absl::Duration shutdown_timeout_;
};

}  // namespace weft::internal

#endif  // WEFT_NET_STREAM_FILTER_H_

// Copyright 2026 The weft Authors.
// SPDX-License-Identifier: Apache-2.0

#ifndef WEFT_NET_DATAGRAM_STATE_H_
#define WEFT_NET_DATAGRAM_STATE_H_

#include <cerrno>
#include <coroutine>
#include <cstddef>
#include <cstdint>
#include <exception>
#include <memory>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "absl/base/optimization.h"
#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/types/span.h"
#include "weft/core/block_pool.h"
#include "weft/core/intrusive_list.h"
#include "weft/core/intrusive_ptr.h"
#include "weft/core/outcome.h"
#include "weft/net/socket.h"
#include "weft/net/socket_address.h"
#include "weft/net/socket_awaiter.h"
#include "weft/net/socket_file.h"
#include "weft/poller/operation.h"
#include "weft/poller/sock_addr.h"
#include "weft/poller/socket_api.h"

namespace weft {

// A datagram that has come.
struct Packet {
  Packet() {}

  std::string data;
  SocketAddress from;         // None: a Unix socket without a name.
  bool is_truncated = false;  // There was more of it.
};

// One that is to be sent. Views: the bytes are the caller's.
struct Outgoing {
  Outgoing() {}
  explicit Outgoing(std::string_view text) : data(text) {}
  Outgoing(std::string_view text, SocketAddress address) : data(text), to(std::move(address)) {}

  std::string_view data;
  SocketAddress to;  // None: to whom the endpoint is connected to.
};

namespace internal {

class DatagramState;

struct DatagramReceiverLink : ListNode {};

// One task that receives: its wait, and what it has claimed.
class DatagramReceiver : public DatagramReceiverLink, public SocketOperation {
 public:
  explicit DatagramReceiver(const IntrusivePtr<DatagramState>& datagram);
  ~DatagramReceiver();

  const IntrusivePtr<DatagramState>& datagram() const { return datagram_; }

  // Somebody else has put one back.
  void GiveClaim(int number);

 protected:
  // False if it is over at once.
  bool Begin(std::coroutine_handle<> handle);
  // As that of SocketOperation; what was claimed is put back.
  bool EndedByCancel();

  absl::Status Error() const;
  // What was claimed, for as long as this lives; null: `result` says why.
  const DatagramSlot* claimed() const;

 private:
  static void OnDone(Runnable* runnable);
  void WaitOn();

  IntrusivePtr<DatagramState> datagram_;
  int claim_ = -1;
};

// What a `Datagram` refers to: the socket, and the datagrams that have been received
// and that nobody has taken yet.
//
// To wait for something to receive is a wait operation, of each task that waits. When
// the first of them ends, what there is is received, by one call of the socket's API for
// many datagrams, and given to those who wait, in the order in which they came: also to
// those whose operations the kernel has not ended, and now never will, as it has nothing
// left. So nobody waits while something is here that nobody has claimed. Who gets nothing
// waits on; what nobody needs is there for the next. No operation ever holds a buffer,
// and a wait that is cancelled puts back what it had claimed.
//
// Threads: belongs to the loop's thread; the count is not atomic.
class DatagramState final : public PooledObject {
 public:
  DatagramState(Socket socket, size_t max_size);
  DatagramState(const DatagramState&) = delete;
  ~DatagramState();

  void AddRef() { ++refs_; }
  void Release() {
    if (--refs_ == 0) delete this;
  }

  Socket& socket() { return socket_; }
  const Socket& socket() const { return socket_; }
  bool is_open() const { return socket_.is_open() && !is_closing_; }
  bool is_ip() const { return is_ip_; }

  // The file to be removed when it is closed.
  void OwnFile(std::string path);

  // Sees to it that there is one that nobody has claimed, if need be by receiving: true
  // if there is. Else `*error` is 0 for nothing, or a negated errno.
  bool HasMore(bool* has_received, int* error);
  // Claims the first of those: its number. It stays until it is released, or is put back.
  // REQUIRES: HasMore().
  int Claim();
  // Claims for those who wait, as far as there is something.
  void GiveToReceivers();
  const DatagramSlot& slot(int number) const { return slots_[static_cast<size_t>(number)]; }
  void ReleaseClaim() { --claimed_; }
  // For who comes next; one who waits is told.
  void PutBack(int number);

  // Those who wait, in the order in which they came.
  List<DatagramReceiverLink>& receivers() { return receivers_; }

  // Sends that wait: who sends without waiting must not overtake them.
  bool has_blocked_sends() const { return blocked_sends_ > 0; }
  void AddBlockedSend() { ++blocked_sends_; }
  void RemoveBlockedSend() {
    if (--blocked_sends_ == 0 && is_closing_) CloseNow();
  }

  void Close() {
    if (std::exchange(is_closing_, true)) return;
    if (blocked_sends_ == 0) CloseNow();
  }
  void Abort() {
    is_closing_ = true;
    CloseNow();
  }

 private:
  static constexpr int kSlots = 16;

  bool is_drained() const { return returned_ == 0 && next_ == filled_; }
  int Fill();
  void CloseNow();

  uint32_t refs_ = 0;
  bool is_closing_ = false;
  bool is_ip_;
  int blocked_sends_ = 0;
  Socket socket_;
  const size_t max_size_;
  std::unique_ptr<char[]> memory_;  // For all slots; made when first needed.
  std::vector<DatagramSlot> slots_;
  int next_ = 0;           // The first that nobody has claimed.
  int filled_ = 0;         // Behind the last that was received.
  int claimed_ = 0;        // How many are claimed: nothing is received over those.
  uint32_t returned_ = 0;  // Bits of those that were claimed, and put back.
  List<DatagramReceiverLink> receivers_;
  std::string path_;
  FileIdentity file_;
};

inline IntrusivePtr<SocketState> SocketOf(const IntrusivePtr<DatagramState>& datagram) {
  return datagram ? datagram->socket().state() : IntrusivePtr<SocketState>();
}

// What an awaiter that receives is made of. `Derived` has Take(), what the await
// yields.
template <class Derived>
class [[nodiscard]] ReceiveAwaiter : public DatagramReceiver {
 public:
  using DatagramReceiver::DatagramReceiver;

  bool await_ready() const { return false; }

  template <class Promise>
  bool await_suspend(std::coroutine_handle<Promise> handle) {
    return CheckUsable(handle.promise().task) && Begin(handle);
  }

  auto await_resume() {
    if (ABSL_PREDICT_FALSE(EndedByCancel())) std::rethrow_exception(task_->cancelled_error());
    if (ABSL_PREDICT_FALSE(is_misused_)) ThrowOtherLoop();
    return static_cast<Derived*>(this)->Take();
  }

  auto await_outcome() {
    Outcome<decltype(std::declval<Derived&>().Take())> outcome;
    if (EndedByCancel()) {
      outcome.SetCancelled(task_->cancelled_error());
    } else if (is_misused_) {
      try {
        ThrowOtherLoop();
      } catch (...) {
        outcome.SetCurrentException();
      }
    } else {
      outcome.Emplace(static_cast<Derived*>(this)->Take());
    }
    return outcome;
  }
};

class ReceivePacketAwaiter final : public ReceiveAwaiter<ReceivePacketAwaiter> {
 public:
  explicit ReceivePacketAwaiter(const IntrusivePtr<DatagramState>& datagram)
      : ReceiveAwaiter(datagram) {}
  ReceivePacketAwaiter(ReceivePacketAwaiter&& other) noexcept : ReceiveAwaiter(other.datagram()) {}

  absl::StatusOr<Packet> Take();
};

class ReceiveIntoAwaiter final : public ReceiveAwaiter<ReceiveIntoAwaiter> {
 public:
  ReceiveIntoAwaiter(const IntrusivePtr<DatagramState>& datagram, absl::Span<char> into)
      : ReceiveAwaiter(datagram), into_(into) {}
  ReceiveIntoAwaiter(ReceiveIntoAwaiter&& other) noexcept
      : ReceiveIntoAwaiter(other.datagram(), other.into_) {}

  absl::StatusOr<Received> Take();

 private:
  absl::Span<char> into_;
};

// One datagram that is being sent. While it waits, the endpoint is not closed.
class SendDatagramAwaiter final : public SocketAwaiter<SendDatagramAwaiter> {
 public:
  SendDatagramAwaiter(const IntrusivePtr<DatagramState>& datagram, std::string_view data,
                      const SockAddr& to)
      : SocketAwaiter(SocketOf(datagram)), datagram_(datagram), data_(data), to_(to) {}
  SendDatagramAwaiter(SendDatagramAwaiter&& other) noexcept
      : SendDatagramAwaiter(other.datagram_, other.data_, other.to_) {}
  ~SendDatagramAwaiter() {
    if (is_blocked_) datagram_->RemoveBlockedSend();
  }

  template <class Promise>
  bool await_suspend(std::coroutine_handle<Promise> handle) {
    if (ABSL_PREDICT_FALSE(datagram_ && !datagram_->is_open())) {
      result = -EBADF;
      return false;
    }
    const bool suspends = SocketAwaiter::await_suspend(handle);
    if (suspends && state == State::kPending) {
      is_blocked_ = true;
      datagram_->AddBlockedSend();
    }
    return suspends;
  }

  void Prepare() {
    piece_ = {const_cast<char*>(data_.data()), data_.size()};
    PrepareSendMsg(socket_->handle(), &piece_, 1, to_.length == 0 ? nullptr : &to_);
  }
  bool Stays() const { return true; }
  absl::Status Take();

 private:
  IntrusivePtr<DatagramState> datagram_;
  std::string_view data_;
  SockAddr to_;
  Buffer piece_ = {};
  bool is_blocked_ = false;
};

}  // namespace internal
}  // namespace weft

#endif  // WEFT_NET_DATAGRAM_STATE_H_

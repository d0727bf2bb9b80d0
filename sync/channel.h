// Copyright 2026 The weft Authors.
// SPDX-License-Identifier: Apache-2.0

#ifndef WEFT_SYNC_CHANNEL_H_
#define WEFT_SYNC_CHANNEL_H_

#include <coroutine>
#include <cstddef>
#include <exception>
#include <limits>
#include <optional>
#include <ostream>
#include <string>
#include <utility>

#include "absl/base/optimization.h"
#include "weft/core/intrusive_list.h"
#include "weft/core/outcome.h"
#include "weft/core/waiter.h"
#include "weft/sync/ring_buffer.h"
#include "weft/sync/waiter_list.h"

namespace weft {

template <class T>
class Channel;

namespace internal {

std::string ChannelText(size_t capacity, size_t size, size_t senders, size_t receivers,
                        bool closed);

// The value waits here, in the frame, until a receiver takes it.
template <class T>
class [[nodiscard]] ChannelSendAwaiter : public Waiter {
 public:
  std::string Description() const override { return channel_->ToString(); }

  ChannelSendAwaiter(Channel<T>* channel, T&& value)
      : channel_(channel), value_(std::move(value)) {}
  ChannelSendAwaiter(ChannelSendAwaiter&& other)  // Before the await.
      : channel_(other.channel_), value_(std::move(other.value_)) {}

  bool await_ready() const { return channel_->CanSend(); }
  template <class Promise>
  void await_suspend(std::coroutine_handle<Promise> handle) {
    channel_->Wait(&channel_->senders_, this, handle);
  }
  bool await_resume() {
    if (ABSL_PREDICT_FALSE(Finish())) std::rethrow_exception(task()->cancelled_error());
    return accepted_;
  }
  Outcome<bool> await_outcome() {
    Outcome<bool> outcome;
    try {
      if (Finish()) {
        outcome.SetCancelled(task()->cancelled_error());
      } else {
        outcome.Emplace(accepted_);
      }
    } catch (...) {
      outcome.SetCurrentException();  // The value's move threw.
    }
    return outcome;
  }

 private:
  friend class Channel<T>;

  // True if the await is to throw. What was accepted cannot be taken back, so a
  // cancellation that came after that is for the next await.
  bool Finish() {
    if (task() == nullptr) {
      accepted_ = channel_->TrySend(std::move(value_));
      return false;
    }
    Unlink();
    return !accepted_ && End();
  }

  Channel<T>* channel_;
  T value_;
  bool accepted_ = false;
};

// The value is handed over into this, in the frame.
template <class T>
class [[nodiscard]] ChannelReceiveAwaiter : public Waiter {
 public:
  std::string Description() const override {
    return channel_ == nullptr ? "<Channel destroyed>" : channel_->ToString();
  }

  explicit ChannelReceiveAwaiter(Channel<T>* channel) : channel_(channel) {}
  ChannelReceiveAwaiter(ChannelReceiveAwaiter&& other) noexcept  // Before the await.
      : channel_(other.channel_) {}
  ~ChannelReceiveAwaiter() {
    // The frame goes in the midst of the wait.
    if (ABSL_PREDICT_FALSE(is_linked() && value_.has_value())) {
      try {
        GiveBack();
      } catch (...) {
        // Its move threw: it cannot be kept.
      }
    }
  }

  bool await_ready() const { return channel_->CanReceive(); }
  template <class Promise>
  void await_suspend(std::coroutine_handle<Promise> handle) {
    channel_->Wait(&channel_->receivers_, this, handle);
  }
  std::optional<T> await_resume() {
    if (ABSL_PREDICT_FALSE(Finish())) std::rethrow_exception(task()->cancelled_error());
    return std::move(value_);
  }
  Outcome<std::optional<T>> await_outcome() {
    Outcome<std::optional<T>> outcome;
    try {
      if (Finish()) {
        outcome.SetCancelled(task()->cancelled_error());
      } else {
        outcome.Emplace(std::move(value_));
      }
    } catch (...) {
      outcome.SetCurrentException();  // The value's move threw.
    }
    return outcome;
  }

 private:
  friend class Channel<T>;

  // True if the await is to throw. The value is not lost then.
  bool Finish() {
    if (task() == nullptr) {
      value_ = channel_->TryReceive();
      return false;
    }
    const bool cancelled = End();
    if (value_.has_value() && channel_ != nullptr) {
      if (ABSL_PREDICT_FALSE(cancelled)) {
        GiveBack();
      } else {
        Unlink();
        channel_->OnDelivered();
      }
    }
    Unlink();
    return cancelled;
  }

  void GiveBack() {
    Unlink();
    // Also if the move throws.
    struct Gone {
      ~Gone() {
        value->reset();
        if (channel != nullptr) channel->OnDelivered();
      }
      std::optional<T>* value;
      Channel<T>* channel;
    } gone{&value_, channel_};
    if (channel_ != nullptr) channel_->TakeBack(*std::move(value_));
  }

  Channel<T>* channel_;  // Null once that is destroyed.
  std::optional<T> value_;
};

}  // namespace internal

// Channel
//
// Values on their way from tasks that send to tasks that receive, and an end:
// whoever has nothing more to send closes it.
//
//   Channel<Row> rows(16);                      // 16 may lie in it; 0: none
//
//   Coro<void> Produce(Channel<Row>& rows) {
//     while (auto row = Next()) {
//       if (bool taken = co_await rows.Send(*std::move(row)); !taken) break;
//     }
//     rows.Close();
//   }
//   Coro<void> Consume(Channel<Row>& rows) {
//     while (auto row = co_await rows.Receive()) Use(*row);
//   }
//
// A value is handed to the receiver that has waited longest, and to nobody who
// comes after it. With capacity zero a Send() waits until a receiver is there.
//
// Close() lets receivers have what was accepted, then they get nullopt; senders
// that wait or come later get false.
//
// Cancelled or not, nothing is lost and nothing is doubled: a Send() that throws
// CancelledError was not accepted, and one that was accepted returns true (the
// cancellation is thrown by the next await). A Receive() that throws it has taken
// nothing: a value that it had been handed goes, before all others, to the next
// receiver, or waits for one beyond the capacity.
//
// Destroying a channel closes it, and what was not received goes.
//
// Threads: belongs to the loop's thread.
// Python: none. `Queue` is asyncio's; a channel hands over, and is closed
// without an exception.
template <class T>
class Channel {
 public:
  static_assert(alignof(T) <= __STDCPP_DEFAULT_NEW_ALIGNMENT__,
                "values lie in frames of coroutines, which are no more strictly aligned than "
                "this: send a std::unique_ptr");

  static constexpr size_t kUnbounded = std::numeric_limits<size_t>::max();

  explicit Channel(size_t capacity = 0) : capacity_(capacity) {}
  Channel(const Channel&) = delete;
  Channel& operator=(const Channel&) = delete;
  ~Channel() {
    while (internal::ChannelReceiveAwaiter<T>* receiver = handed_.PopFront()) {
      receiver->channel_ = nullptr;
    }
    CloseHere();
  }

  // Awaitable of bool: until the value is accepted, or handed over; at once if
  // there is room, or a receiver waits. False if the channel is closed: the value
  // is gone then.
  internal::ChannelSendAwaiter<T> Send(T value) {
    return internal::ChannelSendAwaiter<T>(this, std::move(value));
  }

  // Awaitable of std::optional<T>: the next value, as soon as there is one; at
  // once if there is. None, when the channel is closed and there are none left.
  internal::ChannelReceiveAwaiter<T> Receive() { return internal::ChannelReceiveAwaiter<T>(this); }

  // The same without waiting. False, and `value` is untouched, if it would wait,
  // or the channel is closed.
  bool TrySend(T&& value) {
    CheckThread();
    if (closed_) return false;
    if (internal::ChannelReceiveAwaiter<T>* receiver = FirstWaiting(receivers_)) {
      HandTo(receiver, std::move(value));
      return true;
    }
    if (buffer_.size() >= capacity_) return false;
    buffer_.PushBack(std::move(value));
    return true;
  }

  // None, if it would wait, or there will be none.
  std::optional<T> TryReceive() {
    CheckThread();
    if (ABSL_PREDICT_FALSE(!returned_.empty())) return returned_.PopFront();
    internal::ChannelSendAwaiter<T>* sender = FirstWaiting(senders_);
    if (!buffer_.empty()) {
      // In this order: if that move throws, nothing has been taken out.
      if (sender != nullptr) {
        buffer_.PushBack(std::move(sender->value_));
        Accept(sender);
      }
      return buffer_.PopFront();
    }
    if (sender == nullptr) return std::nullopt;
    std::optional<T> value(std::move(sender->value_));
    Accept(sender);
    return value;
  }

  // Nothing more will be sent. Does nothing the second time.
  void Close() {
    CheckThread();
    CloseHere();
  }
  bool IsClosed() const { return closed_; }

  // How many values lie in it, and how many may; those of senders that wait are
  // not among them.
  size_t Size() const { return returned_.size() + buffer_.size(); }
  bool Empty() const { return Size() == 0; }
  size_t Capacity() const { return capacity_; }

  // "<Channel capacity=16 size=2 receivers=0 ...>": what is not zero.
  std::string ToString() const {
    return internal::ChannelText(capacity_, Size(), senders_.CountSlowly(),
                                 receivers_.CountSlowly(), closed_);
  }
  friend std::ostream& operator<<(std::ostream& out, const Channel& channel) {
    return out << channel.ToString();
  }

 private:
  friend class internal::ChannelSendAwaiter<T>;
  friend class internal::ChannelReceiveAwaiter<T>;

  // In debug mode: RuntimeError if another thread is running the loop of those who
  // wait.
  void CheckThread() const {
    if (const internal::Waiter* sender = senders_.front()) sender->CheckThread();
    if (const internal::Waiter* receiver = receivers_.front()) receiver->CheckThread();
  }

  void CloseHere() {
    closed_ = true;
    while (internal::ChannelSendAwaiter<T>* sender = senders_.PopFront()) sender->Wake();
    EndReceivers();
  }

  bool CanSend() { return closed_ || buffer_.size() < capacity_ || FirstWaiting(receivers_); }

  // While a receiver may still give a value back it is not the end.
  bool CanReceive() {
    return Size() > 0 || FirstWaiting(senders_) != nullptr || (closed_ && handed_.empty());
  }

  template <class Awaiter, class Promise>
  static void Wait(List<Awaiter>* list, Awaiter* awaiter, std::coroutine_handle<Promise> handle) {
    if (Awaiter* other = list->front()) {
      internal::WaiterList::CheckSameLoop(other, handle.promise().task);
    }
    list->PushBack(awaiter);
    awaiter->Begin(handle);
  }

  // The first that waits, or null. Those before it, which were cancelled, leave.
  template <class Awaiter>
  static Awaiter* FirstWaiting(List<Awaiter>& list) {
    while (Awaiter* first = list.front()) {
      if (first->is_waiting()) return first;
      first->Unlink();
    }
    return nullptr;
  }

  void HandTo(internal::ChannelReceiveAwaiter<T>* receiver, T&& value) {
    receiver->value_.emplace(std::move(value));
    receiver->Wake();
    receiver->Unlink();
    handed_.PushBack(receiver);
  }

  void Accept(internal::ChannelSendAwaiter<T>* sender) {
    sender->accepted_ = true;
    sender->Unlink();
    sender->Wake();
  }

  // A receiver was cancelled after it was handed a value. Such receivers run in
  // the order in which they were handed theirs, so the values come in order.
  void TakeBack(T&& value) {
    if (internal::ChannelReceiveAwaiter<T>* receiver = FirstWaiting(receivers_)) {
      HandTo(receiver, std::move(value));
    } else {
      returned_.PushBack(std::move(value));
    }
  }

  // One value less is on its way.
  void OnDelivered() {
    if (ABSL_PREDICT_FALSE(closed_)) EndReceivers();
  }

  // Closed: who still waits need not, unless a value may come back.
  void EndReceivers() {
    if (!handed_.empty()) return;
    while (internal::ChannelReceiveAwaiter<T>* receiver = receivers_.PopFront()) receiver->Wake();
  }

  size_t capacity_;
  bool closed_ = false;
  internal::RingBuffer<T> buffer_;
  internal::RingBuffer<T> returned_;  // By cancelled receivers; older than all in buffer_.
  List<internal::ChannelSendAwaiter<T>> senders_;
  List<internal::ChannelReceiveAwaiter<T>> receivers_;
  List<internal::ChannelReceiveAwaiter<T>> handed_;  // Have a value, and did not run yet.
};

}  // namespace weft

#endif  // WEFT_SYNC_CHANNEL_H_

// Copyright 2026 The weft Authors.
// SPDX-License-Identifier: Apache-2.0

#ifndef WEFT_SYNC_QUEUE_H_
#define WEFT_SYNC_QUEUE_H_

#include <algorithm>
#include <coroutine>
#include <cstddef>
#include <cstdint>
#include <exception>
#include <functional>
#include <optional>
#include <ostream>
#include <string>
#include <type_traits>
#include <utility>
#include <vector>

#include "absl/base/optimization.h"
#include "weft/core/coro.h"
#include "weft/core/outcome.h"
#include "weft/sync/event.h"
#include "weft/sync/guard.h"
#include "weft/sync/ring_buffer.h"
#include "weft/sync/waiter_list.h"

namespace weft {
namespace internal {

// What all queues are, whatever they keep and in what order.
//
// As in CPython nothing is handed over: an item lies in the queue until a getter
// that runs takes it, and a getter that was woken and finds none waits again,
// behind the others. So a getter that is cancelled has nothing to give back; if
// it was woken, it wakes the next.
class QueueState {
 public:
  explicit QueueState(int64_t max_size) : max_size_(max_size) { finished_.Set(); }
  QueueState(const QueueState&) = delete;
  QueueState& operator=(const QueueState&) = delete;

  // The limit as it was given. None, if it is not positive.
  int64_t MaxSize() const { return max_size_; }

  // Counts a job as done: one for each item that was taken. At the last one
  // Join() ends. Errors: ValueError "task_done() called too many times".
  void TaskDone() {
    if (ABSL_PREDICT_FALSE(unfinished_ == 0)) ThrowTaskDoneTooOften();
    if (--unfinished_ == 0) finished_.Set();
  }

  // Awaitable of void: until TaskDone() was called for every item there ever
  // was; at once, if it was.
  EventAwaiter Join() { return finished_.Wait(); }

 protected:
  ~QueueState() = default;

  // The end of one wait: whether the queue still is there. If the wait failed,
  // passes the wake on and throws. `may_go_on`: whether a wake would be of use.
  template <class Queue, class MayGoOn>
  static bool EndWait(const BackRef<Queue>& queue, const ListWait& wait, const Outcome<void>& ended,
                      WaiterList QueueState::* list, MayGoOn may_go_on) {
    const bool alive = queue.get() != nullptr;
    if (ABSL_PREDICT_FALSE(!ended.has_value())) {
      if (alive && wait.was_woken() && may_go_on()) (queue.get()->*list).WakeFirst();
      std::rethrow_exception(ended.exception());
    }
    return alive;
  }

  void CountPut() {
    ++unfinished_;
    finished_.Clear();
    getters_.WakeFirst();
  }

  std::string Text(const char* name, size_t size) const;

  [[noreturn]] static void ThrowTaskDoneTooOften();
  [[noreturn]] static void ThrowEmpty();
  [[noreturn]] static void ThrowFull();
  [[noreturn]] static void ThrowShutDown();

  int64_t max_size_;
  bool shut_down_ = false;
  uint64_t unfinished_ = 0;
  Event finished_;
  WaiterList getters_;
  WaiterList putters_;
};

template <class T, class Items>
class QueueOf;

// Takes or waits: at once without a coroutine, else by one, since who is woken
// may have to wait again.
template <class T, class Items>
class [[nodiscard]] QueueGetAwaiter {
 public:
  explicit QueueGetAwaiter(QueueOf<T, Items>* queue) : queue_(queue) {}
  QueueGetAwaiter(QueueGetAwaiter&& other) noexcept : queue_(other.queue_) {}  // Before the await.

  bool await_ready() const { return !queue_->Empty() || queue_->IsShutDown(); }
  template <class Promise>
  void await_suspend(std::coroutine_handle<Promise> handle) {
    slow_.emplace(QueueOf<T, Items>::GetSlowly(queue_).operator co_await());
    slow_->await_suspend(handle);
  }
  T await_resume() { return slow_.has_value() ? slow_->await_resume() : queue_->GetNowait(); }
  Outcome<T> await_outcome() {
    if (slow_.has_value()) return slow_->await_outcome();
    Outcome<T> outcome;
    try {
      outcome.Emplace(queue_->GetNowait());
    } catch (...) {
      outcome.SetCurrentException();
    }
    return outcome;
  }

 private:
  QueueOf<T, Items>* queue_;
  std::optional<CoroAwaiter<T>> slow_;
};

template <class T, class Items>
class [[nodiscard]] QueuePutAwaiter {
 public:
  QueuePutAwaiter(QueueOf<T, Items>* queue, T&& item) : queue_(queue), item_(std::move(item)) {}
  QueuePutAwaiter(QueuePutAwaiter&& other)  // Before the await.
      : queue_(other.queue_), item_(std::move(other.item_)) {}

  bool await_ready() const { return !queue_->Full() || queue_->IsShutDown(); }
  template <class Promise>
  void await_suspend(std::coroutine_handle<Promise> handle) {
    slow_.emplace(QueueOf<T, Items>::PutSlowly(queue_, &item_).operator co_await());
    slow_->await_suspend(handle);
  }
  void await_resume() {
    if (slow_.has_value()) return slow_->await_resume();
    queue_->PutNowait(std::move(item_));
  }
  Outcome<void> await_outcome() {
    if (slow_.has_value()) return slow_->await_outcome();
    Outcome<void> outcome;
    try {
      queue_->PutNowait(std::move(item_));
      outcome.Emplace();
    } catch (...) {
      outcome.SetCurrentException();
    }
    return outcome;
  }

 private:
  QueueOf<T, Items>* queue_;
  T item_;
  std::optional<CoroAwaiter<void>> slow_;
};

// `Items` keeps the items and decides which comes next:
//   size_t size() const; void Push(T&&); T Pop(); static const char* name();
template <class T, class Items>
class QueueOf : public QueueState {
 public:
  static_assert(alignof(T) <= __STDCPP_DEFAULT_NEW_ALIGNMENT__,
                "items lie in frames of coroutines, which are no more strictly aligned than this: "
                "put a std::unique_ptr");

  using ValueType = T;

  size_t Size() const { return items_.size(); }
  bool Empty() const { return items_.size() == 0; }
  bool Full() const { return max_size_ > 0 && items_.size() >= static_cast<uint64_t>(max_size_); }

  // Awaitable of void: puts `item` in as soon as there is room; at once if there
  // is. If it is cancelled, the item goes and was never in.
  // Errors: QueueShutDown.
  QueuePutAwaiter<T, Items> Put(T item) { return QueuePutAwaiter<T, Items>(this, std::move(item)); }

  // Awaitable of T: takes the next item, as soon as there is one. If it is
  // cancelled, the items stay where they are.
  // Errors: QueueShutDown, when there are none left.
  QueueGetAwaiter<T, Items> Get() { return QueueGetAwaiter<T, Items>(this); }

  // The same without waiting. Errors: also QueueFull; `item` then is untouched
  // if it was given as an rvalue.
  void PutNowait(T&& item) {
    if (ABSL_PREDICT_FALSE(shut_down_)) ThrowShutDown();
    if (ABSL_PREDICT_FALSE(Full())) ThrowFull();
    getters_.CheckThread();
    items_.Push(std::move(item));
    CountPut();
  }
  void PutNowait(const T& item)
    requires std::is_copy_constructible_v<T>
  {
    PutNowait(T(item));
  }

  // Errors: also QueueEmpty.
  T GetNowait() {
    if (ABSL_PREDICT_FALSE(Empty())) shut_down_ ? ThrowShutDown() : ThrowEmpty();
    putters_.CheckThread();
    // The item is out before a putter is woken, also if its last move throws.
    struct Wake {
      ~Wake() { queue->putters_.WakeFirst(); }
      QueueOf* queue;
    } wake{this};
    return items_.Pop();
  }

  // Puts fail from now on, and gets when there are no items left. `immediate`:
  // drops the items that are left, and counts them as done. Those who wait look
  // at once.
  void Shutdown(bool immediate = false) {
    getters_.CheckThread();
    putters_.CheckThread();
    shut_down_ = true;
    std::vector<T> dropped;  // Destroyed when all is done: an item may call in here.
    if (immediate) {
      for (dropped.reserve(Size()); !Empty();) dropped.push_back(items_.Pop());
      unfinished_ -= std::min<uint64_t>(unfinished_, dropped.size());
      if (unfinished_ == 0) finished_.Set();
    }
    getters_.WakeAll();
    putters_.WakeAll();
  }
  bool IsShutDown() const { return shut_down_; }

  // "<Queue maxsize=2 size=2 putters=1 tasks=3>".
  std::string ToString() const { return Text(Items::name(), Size()); }
  friend std::ostream& operator<<(std::ostream& out, const QueueOf& queue) {
    return out << queue.ToString();
  }

 protected:
  explicit QueueOf(int64_t max_size) : QueueState(max_size) {}
  QueueOf(int64_t max_size, Items items) : QueueState(max_size), items_(std::move(items)) {}
  ~QueueOf() = default;

 private:
  friend class QueueGetAwaiter<T, Items>;
  friend class QueuePutAwaiter<T, Items>;

  static Coro<T> GetSlowly(QueueOf* self) {
    BackRef<QueueOf> queue(self, self->refs_);
    while (queue.get()->Empty()) {
      if (queue.get()->shut_down_) ThrowShutDown();
      ListWait wait(&queue.get()->getters_, "Queue.Get");
      Outcome<void> ended = co_await wait;
      if (!EndWait(queue, wait, ended, &QueueOf::getters_, [&] { return !queue.get()->Empty(); })) {
        ThrowShutDown();  // It was destroyed.
      }
    }
    co_return queue.get()->GetNowait();
  }

  static Coro<void> PutSlowly(QueueOf* self, T* item) {
    BackRef<QueueOf> queue(self, self->refs_);
    while (queue.get()->Full()) {
      if (queue.get()->shut_down_) ThrowShutDown();
      ListWait wait(&queue.get()->putters_, "Queue.Put");
      Outcome<void> ended = co_await wait;
      if (!EndWait(queue, wait, ended, &QueueOf::putters_, [&] { return !queue.get()->Full(); })) {
        ThrowShutDown();
      }
    }
    queue.get()->PutNowait(std::move(*item));
  }

  Items items_;
  BackRefs<QueueOf> refs_;
};

template <class T>
class FifoItems {
 public:
  static const char* name() { return "Queue"; }
  size_t size() const { return items_.size(); }
  void Push(T&& item) { items_.PushBack(std::move(item)); }
  T Pop() { return items_.PopFront(); }

 private:
  RingBuffer<T> items_;
};

template <class T>
class LifoItems {
 public:
  static const char* name() { return "LifoQueue"; }
  size_t size() const { return items_.size(); }
  void Push(T&& item) { items_.push_back(std::move(item)); }
  T Pop() {
    T item = std::move(items_.back());
    items_.pop_back();
    return item;
  }

 private:
  std::vector<T> items_;
};

// A heap. Equal items come out in the order in which they were put in.
template <class T, class Compare>
class PriorityItems {
 public:
  explicit PriorityItems(Compare compare = Compare()) : later_{std::move(compare)} {}

  static const char* name() { return "PriorityQueue"; }
  size_t size() const { return items_.size(); }
  void Push(T&& item) {
    items_.push_back(Item{std::move(item), next_++});
    std::push_heap(items_.begin(), items_.end(), later_);
  }
  T Pop() {
    std::pop_heap(items_.begin(), items_.end(), later_);
    T item = std::move(items_.back().value);
    items_.pop_back();
    return item;
  }

 private:
  struct Item {
    T value;
    uint64_t number;
  };
  struct Later {
    bool operator()(const Item& a, const Item& b) const {
      if (compare(b.value, a.value)) return true;
      return !compare(a.value, b.value) && a.number > b.number;
    }
    Compare compare;
  };

  std::vector<Item> items_;
  uint64_t next_ = 0;
  Later later_;
};

}  // namespace internal

// Queue
//
// Items on their way from tasks that put to tasks that get, in the order in
// which they were put.
//
//   Queue<Job> jobs(100);                     // at most 100 wait
//   ...
//   co_await jobs.Put(std::move(job));        // the producers
//   Job job = co_await jobs.Get();            // the workers
//   jobs.TaskDone();
//   ...
//   co_await jobs.Join();                     // all that was put is done
//   jobs.Shutdown();                          // the workers get QueueShutDown
//
// Who waits is served first come, first served, but nothing is handed over: an
// item that a getter was woken for may be taken by whoever comes before it runs,
// and it waits again, at the back. So a cancelled Get() loses nothing, and a
// cancelled Put() has put nothing in.
//
// When a queue is destroyed its items are, too; who waits then waits until it is
// cancelled.
//
// Threads: belongs to the loop's thread.
// Python: asyncio.Queue of 3.13.
template <class T>
class Queue : public internal::QueueOf<T, internal::FifoItems<T>> {
 public:
  // Not more than `max_size` items; no limit, if it is zero or negative.
  explicit Queue(int64_t max_size = 0) : internal::QueueOf<T, internal::FifoItems<T>>(max_size) {}
};

// PriorityQueue
//
// A queue that gives the item first that comes before all others by `Compare`:
// the smallest, by default. (A std::priority_queue with the same comparison
// gives the largest.) Of equal ones, the first that was put in.
//
// Python: asyncio.PriorityQueue, where the order of equal items is unspecified.
template <class T, class Compare = std::less<T>>
class PriorityQueue : public internal::QueueOf<T, internal::PriorityItems<T, Compare>> {
  using Items = internal::PriorityItems<T, Compare>;

 public:
  explicit PriorityQueue(int64_t max_size = 0, Compare compare = Compare())
      : internal::QueueOf<T, Items>(max_size, Items(std::move(compare))) {}
};

// LifoQueue
//
// A queue that gives the item first that was put in last.
//
// Python: asyncio.LifoQueue.
template <class T>
class LifoQueue : public internal::QueueOf<T, internal::LifoItems<T>> {
 public:
  explicit LifoQueue(int64_t max_size = 0)
      : internal::QueueOf<T, internal::LifoItems<T>>(max_size) {}
};

}  // namespace weft

#endif  // WEFT_SYNC_QUEUE_H_

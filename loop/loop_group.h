// Copyright 2026 The weft Authors.
// SPDX-License-Identifier: Apache-2.0

#ifndef WEFT_LOOP_LOOP_GROUP_H_
#define WEFT_LOOP_LOOP_GROUP_H_

#include <atomic>
#include <csignal>
#include <cstdint>
#include <exception>
#include <memory>
#include <mutex>
#include <string>
#include <type_traits>
#include <utility>
#include <vector>

#include "weft/core/coro.h"
#include "weft/core/errors.h"
#include "weft/core/intrusive_list.h"
#include "weft/core/latch.h"
#include "weft/core/source_location.h"
#include "weft/core/task.h"
#include "weft/loop/environment.h"
#include "weft/loop/loop_ref.h"
#include "weft/loop/next_signal.h"
#include "weft/loop/thread_future.h"

namespace weft {

// What a group is made with. What it inherits is for each loop: of an environment, all
// of them use the same from their threads, so it has to be fit for that.
struct LoopGroupOptions : RunOptions {
  LoopGroupOptions();

  // How many. Default: a loop for each processor that the program may run on.
  int loops;

  // Threads are called "<name>_<number of the loop>".
  std::string thread_name = "weft-loop";

  // Loop i runs on the i-th of AvailableProcessors() only, if the system can do that; and
  // so do the threads that it starts, such as those of its executor.
  bool pin_threads = false;
};

// LoopGroup
//
// Several loops, each on a thread of its own: how one process uses several cores. The
// loops share nothing and a task stays where it was made; what one has to tell another
// it posts, and what is to run everywhere is a coroutine for each, its main:
//
//   Coro<void> Serve(int index);                // A server with reuse_port, say.
//
//   Coro<int> Main() {
//     LoopGroup group;                          // The threads are there, and run.
//     group.RunOnEach(Serve);
//     co_await group.RunUntilSignal();          // SIGTERM and SIGINT stop it.
//     co_return 0;
//   }
//
// The loop that makes the group, here that of Run(), is none of it: it sleeps, and
// hears of signals. Without one, group.Join() waits.
//
// The end is that of Run() on each loop. Stop() cancels the mains, as Ctrl-C does
// Run()'s, and they may clean up, for as long as they like; then the tasks that are left
// are cancelled, and generators, executor and loop are closed. Abort() does not wait for
// the mains. If a main fails, the group stops, and Join() and WaitDone() throw the first
// such error.
//
//              Stop(), a main fails,
//              Join() and no main is left             the mains are over, Abort()
//    running ------------------------------> stopping -----------------------------> ended
//
// The destructor stops the group and blocks until it has ended; an error that nobody was
// thrown at is logged.
//
// Threads: any for all of it, at the same time; but WaitDone() and RunUntilSignal() are
// coroutines, for any loop that is none of the group's.
// Python: none.
class LoopGroup {
 public:
  // Errors: ValueError if `loops` is less than 1, if there is no such poller, and if the
  // environment has a poller or a clock, which cannot serve several loops; RuntimeError
  // if the system has no thread to give.
  explicit LoopGroup(LoopGroupOptions options = LoopGroupOptions());
  LoopGroup(const LoopGroup&) = delete;
  LoopGroup& operator=(const LoopGroup&) = delete;
  // REQUIRES: this is none of the group's threads.
  ~LoopGroup();

  int size() const { return static_cast<int>(members_.size()); }

  // The loops, from 0 on. Each may be posted to until the group has ended, and so does
  // RunCoroutineThreadsafe(). REQUIRES: there is one of that number.
  const LoopRef& loop(int index) const;

  // One after the other, round and round.
  const LoopRef& Next() {
    return loop(static_cast<int>(next_.fetch_add(1, std::memory_order_relaxed) % members_.size()));
  }

  // Has `callable` run on the Next() loop. Errors: as LoopRef::Post().
  template <internal::PlainCallback F>
  void Post(F&& callable, const SourceLocation& location = SourceLocation::current()) {
    Next().Post(std::forward<F>(callable), location);
  }

  // Starts function(index), which returns a Coro, on each loop, as one more of its mains.
  // The function is called on all threads at the same time, and kept until the last main
  // is over. What the mains return or throw is in the futures, which may be dropped.
  // Errors: RuntimeError "LoopGroup is stopped".
  template <class F>
  auto RunOnEach(F function) {
    using Main = std::invoke_result_t<const F&, int>;
    return StartMains<typename CoroResult<Main>::Type>(
        std::make_shared<const F>(std::move(function)));
  }

  // Asks the group to end. Does nothing the second time.
  void Stop();

  // The same, and does not wait for the mains' cleanup: all tasks are cancelled, the
  // mains once more.
  void Abort();

  // Blocks until the group has ended, for which it need not be asked: it does when no
  // main is left. Throws what the first main threw that failed.
  // Errors: RuntimeError on one of the group's threads.
  void Join();

  // The same without blocking. If it is cancelled, it stops the group and still waits;
  // the second time it aborts the group, and waits no more.
  // Errors: as Join().
  Coro<void> WaitDone();

  // The same, and a signal stops the group; another one aborts it. Gives the first, or
  // 0 if none came.
  // Errors: as Join() and SignalReceiver: it is for the main thread.
  Coro<int> RunUntilSignal(SignalSet signals = SignalSet(SIGTERM, SIGINT));

 private:
  struct Member;

  template <class C>
  struct CoroResult;
  template <class T>
  struct CoroResult<Coro<T>> {
    using Type = T;
  };

  // RunOnEach(). No loop is told to stop in its midst: the first main may fail before the
  // last has been started.
  class Starting {
   public:
    // Counts the mains, too.
    explicit Starting(LoopGroup* group) : group_(group) { group_->BeginStart(); }
    Starting(const Starting&) = delete;
    ~Starting() { group_->EndStart(); }

   private:
    LoopGroup* const group_;
  };

  // One main, from RunOnEach() until its frame is gone.
  class Ticket {
   public:
    explicit Ticket(LoopGroup* group) : group_(group) {}
    Ticket(Ticket&& other) noexcept : group_(std::exchange(other.group_, nullptr)) {}
    ~Ticket() {
      if (group_ != nullptr) group_->EndMain();
    }
    LoopGroup* group() const { return group_; }

   private:
    LoopGroup* group_;
  };

  // One that runs, in its frame.
  class RunningMain : public ListNode {
   public:
    RunningMain(LoopGroup* group, int index);
    ~RunningMain();
    TaskRef& task() { return task_; }

   private:
    Member* const member_;
    TaskRef task_;
  };

  template <class T, class F>
  static Coro<T> RunMain(Ticket ticket, int index, std::shared_ptr<const F> function) {
    const RunningMain running(ticket.group(), index);
    try {
      if constexpr (std::is_void_v<T>) {
        co_await (*function)(index);
        co_return;
      } else {
        T value = co_await (*function)(index);
        co_return value;
      }
    } catch (const CancelledError&) {
      throw;
    } catch (...) {
      ticket.group()->Fail(std::current_exception());
      throw;
    }
  }

  template <class T, class F>
  std::vector<ThreadFuture<T>> StartMains(std::shared_ptr<const F> function) {
    const Starting starting(this);
    std::vector<Ticket> tickets;
    for (int i = 0; i < size(); ++i) tickets.emplace_back(this);
    std::vector<ThreadFuture<T>> futures;
    for (int i = 0; i < size(); ++i) {
      futures.push_back(
          RunCoroutineThreadsafe(RunMain<T>(std::move(tickets[i]), i, function), loop(i)));
    }
    return futures;
  }

  void BeginStart();
  void EndStart();
  void EndMain();
  void Fail(std::exception_ptr error);
  void Finish();
  void CheckMayWait(const char* caller) const;
  void RunMember(Member* member);
  void EndMember();
  static Coro<void> Host(Member* member);
  Coro<void> Listen(SignalReceiver* receiver, int* first);
  template <class F>
  void PostToAll(F change);
  void PostStop();
  void PostAbort();
  void JoinThreads();
  void ThrowIfFailed();

  const LoopGroupOptions options_;
  std::vector<std::unique_ptr<Member>> members_;
  internal::Latch made_;  // The loops.
  std::atomic<uint32_t> next_{0};
  const std::shared_ptr<internal::ThreadFutureState<void>> ended_;

  std::mutex mutex_;
  int running_;       // Threads. All from here on is guarded by the mutex.
  int mains_ = 0;     // Tickets.
  int starting_ = 0;  // RunOnEach() that go on.
  bool is_stopping_ = false;
  bool is_aborted_ = false;
  bool ends_alone_ = false;      // When no main is left.
  std::exception_ptr error_;     // The first.
  bool is_error_known_ = false;  // Somebody was thrown at.

  std::mutex join_mutex_;  // Guards the threads.
};

}  // namespace weft

#endif  // WEFT_LOOP_LOOP_GROUP_H_

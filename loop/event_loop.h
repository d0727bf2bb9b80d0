// Copyright 2026 The weft Authors.
// SPDX-License-Identifier: Apache-2.0

#ifndef WEFT_LOOP_EVENT_LOOP_H_
#define WEFT_LOOP_EVENT_LOOP_H_

#include <cstdint>
#include <functional>
#include <memory>
#include <ostream>
#include <string>
#include <string_view>
#include <type_traits>
#include <utility>
#include <vector>

#include "absl/functional/any_invocable.h"
#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/time/time.h"
#include "weft/core/block_pool.h"
#include "weft/core/clock.h"
#include "weft/core/exception_context.h"
#include "weft/core/future.h"
#include "weft/core/scheduler.h"
#include "weft/core/task.h"
#include "weft/executor/executor.h"
#include "weft/loop/environment.h"
#include "weft/loop/executor_job.h"
#include "weft/loop/fd_watcher.h"
#include "weft/loop/instrument.h"
#include "weft/loop/loop_owned.h"
#include "weft/loop/loop_ref.h"
#include "weft/loop/loop_stats.h"
#include "weft/loop/observation.h"
#include "weft/loop/poll_pacer.h"
#include "weft/loop/signal_watcher.h"
#include "weft/poller/poller.h"
#include "weft/poller/slab_pool.h"
#include "weft/poller/socket_api.h"
#include "weft/timer/timer_wheel.h"

namespace weft {

class EventLoop;

// Is told what went wrong where nobody can be thrown at.
using ExceptionHandler = std::function<void(EventLoop& loop, const ExceptionContext& context)>;

// EventLoop
//
// One thread that schedules thousands of waits. It does nothing but run, round
// after round, the callbacks that are ready: what was posted from other threads,
// what I/O has completed, the timers that are due, and what those add.
//
// Most programs never make one: `Run(Main())` does. By hand:
//
//   absl::StatusOr<std::unique_ptr<EventLoop>> loop = EventLoop::Create();
//   (*loop)->CallSoon([] { std::puts("hello"); });
//   int result = (*loop)->RunUntilComplete(Main());
//   (*loop)->Close();
//
// One round: see RunUntilStopped() in event_loop.cc. Callbacks run in the order in which
// they became ready, and what a round's callbacks add waits for the next round.
//
// Closing destroys what is left, without running it: Run() is what lets tasks
// clean up. A loop that was not closed is closed by its destructor, with a
// warning.
//
// Threads: belongs to one thread, which may be another than the one that made
// it. From others only CallSoonThreadsafe() and Ref() may be called, while the
// loop is known to live; a LoopRef needs no such care.
// Python: asyncio's event loop.
class EventLoop final : public Scheduler,
                        public internal::TaskStarter<EventLoop>,
                        public internal::PooledObject {
 public:
  // Errors: INVALID_ARGUMENT if there is no poller of that name, UNAVAILABLE if
  // it does not work on this system, with the reason.
  static absl::StatusOr<std::unique_ptr<EventLoop>> Create(LoopOptions options = LoopOptions());

  ~EventLoop();

  // -- Callbacks. CallSoon(), CallLater() and CallAt() are Scheduler's: the
  // callable may be move-only; up to 48 bytes of captures allocate nothing.

  // CallSoon() from any thread.
  template <internal::PlainCallback F>
  Handle CallSoonThreadsafe(F&& callable,
                            const SourceLocation& location = SourceLocation::current()) {
    return shared_->Post(internal::CallbackSlot::Make(std::forward<F>(callable), location));
  }

  // What other threads may hold instead of the loop. Any thread.
  LoopRef Ref() const { return LoopRef(shared_); }

  // The loop's time, read now. Monotonic; only differences mean something.
  TimePoint Time() const { return Now(); }

  // -- Tasks and futures.

  // CreateTask() is as the free function, also while the loop does not run.
  using internal::TaskStarter<EventLoop>::CreateTask;

  template <class T = void>
  Future<T> CreateFuture(const SourceLocation& location = SourceLocation::current()) {
    return MakeFuture<T>(*this, location);
  }

  // Those that are not done, in the order of creation; also while the loop does
  // not run.
  std::vector<TaskRef> AllTasks();

  // All that is known of each of them; see the free function DumpTasks().
  void DumpTasks(std::ostream& out);

  // -- Running.

  // Runs until `main` is done and returns its value, or throws what it threw.
  // The loop stays open and may run again.
  // Errors: RuntimeError "This event loop is already running", "Cannot run the
  // event loop while another loop is running", "Event loop stopped before Future
  // completed." if Stop() came first, "Event loop is closed"; ValueError for
  // another loop's future.
  template <class T>
  T RunUntilComplete(Coro<T> main) {
    CheckMayRun();
    return RunUntilDone(CreateTask(std::move(main)));
  }
  template <class T>
  T RunUntilComplete(Future<T> future) {
    CheckMayRun();
    if (future.state()->scheduler() != core()) ThrowOtherLoopsFuture();
    return RunUntilDone(std::move(future));
  }

  // Runs until Stop() was called; at least one round.
  void RunForever();

  // Makes the run end after the round that is running, or after one round if
  // none is. What was added by then stays queued.
  void Stop() {
    CheckThread();
    stopping_ = true;
  }

  // Ends the loop for good: destroys what is queued and the frames of tasks that
  // are not done (which is reported), ends all I/O. Does nothing the second time,
  // also if that is in the midst of the first: in the exception handler, or in a
  // destructor.
  // Errors: RuntimeError "Cannot close a running event loop".
  void Close();

  bool IsRunning() const { return running_; }
  bool IsClosed() const { return closed(); }

  // -- Executors.

  // Runs `callable` on a thread of `executor` (null: the default pool) and gives
  // its result, or what it threw. The callable is destroyed on that thread. If
  // the future is cancelled, a job that has begun goes on, and its result is
  // dropped.
  // Errors: RuntimeError "Executor shutdown has been called" for the default pool
  // after ShutdownDefaultExecutor(), and what Executor::Submit() throws.
  template <class F>
    requires internal::PlainCallback<internal::ClosureType<F>>
  Future<std::invoke_result_t<internal::ClosureType<F>&>> RunInExecutor(
      Executor* executor, F&& callable,
      const SourceLocation& location = SourceLocation::current()) {
    WEFT_CHECK_CLOSURE(F);
    return internal::SubmitJob(*this, executor == nullptr ? DefaultExecutor() : *executor,
                               internal::KeepClosure(std::forward<F>(callable)), location);
  }

  // The pool that RunInExecutor(nullptr, ...) and ToThread() use; made when first
  // needed. Errors: RuntimeError once it was shut down.
  Executor& DefaultExecutor();

  // Replaces it; null: back to a pool of the loop's own. The caller keeps
  // `executor`, which has to outlive the loop.
  void SetDefaultExecutor(Executor* executor) {
    CheckThread();
    default_executor_ = executor;
  }

  // Ends the async generators that were not run to their end, as Run() does
  // before it closes the loop.
  Coro<void> ShutdownAsyncGenerators();

  // Waits until the jobs of the default pool are done, and refuses new ones.
  Coro<void> ShutdownDefaultExecutor();

  // -- Descriptors that are not the loop's: level-triggered. One callback for
  // each direction of a descriptor.

  // Has `callback` run in every round in which `handle` is readable, until
  // RemoveReader(); replaces the one before. The descriptor stays the caller's,
  // who removes the reader before closing it.
  // Errors: ValueError for a negative one, and for an empty callback; what the system
  // says else, such as PERMISSION_DENIED for a regular file.
  template <internal::PlainCallback F>
  absl::Status AddReader(NativeHandle handle, F&& callback,
                         const SourceLocation& location = SourceLocation::current()) {
    return Watch(internal::FdWatcher::Direction::kRead, handle, std::forward<F>(callback),
                 location);
  }
  // False if there was none.
  bool RemoveReader(NativeHandle handle);
  // The same for writable.
  template <internal::PlainCallback F>
  absl::Status AddWriter(NativeHandle handle, F&& callback,
                         const SourceLocation& location = SourceLocation::current()) {
    return Watch(internal::FdWatcher::Direction::kWrite, handle, std::forward<F>(callback),
                 location);
  }
  bool RemoveWriter(NativeHandle handle);

  // -- Signals of the process. The main thread only. Coroutines have NextSignal().

  // Has `callback` run as an ordinary callback whenever the process gets
  // `signal`, as often as it does and in that order; replaces the one before.
  // Errors: ValueError if there is no such signal, and for an empty callback;
  // RuntimeError "sig 9 cannot be caught", and on another thread than the main one.
  template <internal::PlainCallback F>
  absl::Status AddSignalHandler(int signal, F&& callback,
                                const SourceLocation& location = SourceLocation::current()) {
    return AddHandler(signal, std::forward<F>(callback), location);
  }
  // Restores what happened before the first. False if there was none.
  bool RemoveSignalHandler(int signal);

  // -- Errors that nobody can be thrown at.

  // Replaces what is called then; null restores the default, which logs. What it throws
  // is logged; but KeyboardInterrupt ends the run with it after this round, as one that a
  // callback throws does.
  void SetExceptionHandler(ExceptionHandler handler) {
    CheckThread();
    exception_handler_ = std::move(handler);
  }
  const ExceptionHandler& GetExceptionHandler() const { return exception_handler_; }
  void CallExceptionHandler(const ExceptionContext& context) noexcept;
  // What the default handler does.
  void DefaultExceptionHandler(const ExceptionContext& context) noexcept;

  // -- Debugging.

  // debug() and SetDebug() are Scheduler's. A callback or a task's step that takes
  // so long, on the loop's clock, is reported in debug mode.
  absl::Duration slow_callback_duration() const { return slow_callback_duration_; }
  void SetSlowCallbackDuration(absl::Duration duration) { slow_callback_duration_ = duration; }

  // Has `instrument` told of what the loop does from the next round on, until it is
  // removed or destroyed.
  // Errors: RuntimeError if it has a loop already.
  void AddInstrument(Instrument* instrument);
  // False if it is not there.
  bool RemoveInstrument(Instrument* instrument);

  // What the loop has done, and how it is now. Counts tasks and what is ready, one
  // by one: for a scrape every few seconds, not for every request.
  LoopStats Stats() const;
  // Stats().max_lag, which begins anew.
  absl::Duration TakeMaxLag() { return std::exchange(max_lag_, absl::ZeroDuration()); }

  // "<EventLoop epoll running=0 closed=0 debug=0>".
  std::string ToString() const;

  // -- What the loop is made of.

  std::string_view poller_name() const { return poller_->name(); }
  Poller& poller() { return *poller_; }
  SocketApi& socket_api() { return *socket_api_; }
  Resolver* resolver() { return resolver_; }  // Null: the system's.
  SlabPool& slab_pool() { return slab_pool_; }
  Clock& clock() { return *clock_; }
  Spawner* spawner() { return spawner_; }  // Null: the system's.

  // -- To live inside a foreign loop.

  // Readable whenever RunOnce() has something to do, also because of a call from outside
  // of a round: CallSoon(), a future's SetResult(), a queue's PutNowait(). For poll(2),
  // epoll(7) and the like; not to be read. The loop's own; the same for its whole life,
  // once it was asked for. `kInvalidHandle` if the poller has no such thing.
  NativeHandle BackendFd();

  // One round: waits for at most `max_wait` if nothing is ready. True if it ran
  // anything. Errors: as RunForever().
  bool RunOnce(absl::Duration max_wait);

  // -- Scheduler's.

  TimePoint Now() const override {
    latest_now_ = is_steady_ ? SteadyClock::Read() : clock_->Now();
    if (latest_now_ >= next_wake_) pacer_.Demand();
    return latest_now_;
  }
  void Arm(Timer* timer, TimePoint deadline) override {
    wheel_.Arm(timer, deadline);
    if (deadline >= next_wake_) return;
    next_wake_ = deadline;
    if (deadline <= latest_now_) pacer_.Demand();
  }
  void Disarm(Timer* timer) override { wheel_.Disarm(timer); }
  void HandleException(ExceptionContext context) noexcept override {
    CallExceptionHandler(context);
  }
  bool Interrupt() noexcept override {
    if (!running_) return false;
    interrupted_ = true;
    Stop();
    return true;
  }
  void QueueFromAnyThread(Runnable* runnable) override;
  void WakeForeignLoop() noexcept override { shared_->WakeIfAsleep(); }

  // -- For weft's own parts.

  // Objects that other threads' posts name and the loop owns.
  internal::LoopOwnedList& owned() { return owned_; }
  internal::SignalWatcher& signal_watcher() { return signals_; }
  // Counts jobs and child processes outside, for which virtual time waits.
  void AddOutsider() { ++outsiders_; }
  void RemoveOutsider() { --outsiders_; }
  internal::Observation& observation() { return observation_; }
  // Has `runnable` run when this round's callbacks have: for what is to leave in
  // one system call.
  ReadyQueue& round_end() {
    core()->WakeIfEmbedded();
    return round_end_;
  }

 private:
  EventLoop(const LoopOptions& options, std::unique_ptr<Poller> owned_poller, Poller* poller);

  class RunScope;
  friend class internal::TaskStarter<EventLoop>;

  template <class T>
  Task<T> StartCoro(Coro<T>&& coro, SourceLocation location) {
    return internal::StartTask(*this, std::move(coro), location);
  }

  void CheckMayRun() const;
  void CheckMayCall() const {
    if (ABSL_PREDICT_FALSE(core()->guarded)) CheckCall();
  }
  absl::Status Watch(internal::FdWatcher::Direction direction, NativeHandle handle,
                     absl::AnyInvocable<void()> callback, const SourceLocation& location);

  template <class T>
  T RunUntilDone(Future<T> future) {
    {
      struct StopWhenDone {
        StopWhenDone(EventLoop* loop, Future<T>* future)
            : id(future->AddDoneCallback([loop](const Future<T>&) { loop->Stop(); })) {}
        ~StopWhenDone() { id.Cancel(); }  // The run may have thrown; the next is not to stop.
        CallbackId id;
      } stop_when_done(this, &future);
      try {
        RunForever();
      } catch (...) {
        // As in CPython: one who is interrupted hears of no other error.
        if (future.Done()) future.state()->MarkRetrieved();
        throw;
      }
    }
    if (!future.Done()) ThrowStoppedEarly();
    return future.TakeResult();
  }
  [[noreturn]] static void ThrowStoppedEarly();
  [[noreturn]] static void ThrowOtherLoopsFuture();

  absl::Status AddHandler(int signal, absl::AnyInvocable<void()> callback,
                          const SourceLocation& location);
  void ThrowIfInterrupted();
  void SleepInForeignLoop();
  void RunUntilStopped();
  bool MaySkipPoll();
  void CollectWithoutPoll();
  void Poll(TimePoint limit);
  absl::Status PollVirtually(bool may_wait, TimePoint limit, ReadyQueue* done);
  TimePoint SteadyMoment(TimePoint moment) const;
  void EndRound(int count);
  int RunReady();
  int RunBatch();
  int RunDueTimers();
  int RunRound();
  void RunRoundEnd();
  void RunPlainRounds();
  void QueueDueTimers(TimePoint now);
  void ReportSlowPoll(TimePoint begin, TimePoint expected, TimePoint end) const;
  [[noreturn]] void ThrowDeadlock();
  void ReportPendingTasks();
  void DescribePending(std::vector<std::string>* texts);
  void DescribeCallbacks(std::vector<std::string>* texts);
  void DrainPoller();
  void DropReady();

  Clock* const clock_;
  const bool is_steady_;
  VirtualClock* const virtual_clock_;
  std::unique_ptr<Poller> owned_poller_;
  Poller* const poller_;
  SocketApi* const socket_api_;
  Spawner* const spawner_;
  Resolver* const resolver_;
  std::shared_ptr<internal::LoopShared> shared_;

  mutable TimePoint latest_now_;                       // The last reading of the clock by anybody.
  TimePoint next_wake_ = TimePoint::InfiniteFuture();  // No later than the first deadline.
  bool running_ = false;
  bool stopping_ = false;
  bool interrupted_ = false;
  bool closing_ = false;      // Close() was called; nothing runs from then on.
  bool may_skip_polls_;       // The clock and the poller are the real ones.
  bool is_embedded_ = false;  // BackendFd() was asked for.
  const TimePoint created_at_;
  // Reading the clock may show that a timer is due.
  mutable internal::PollPacer pacer_;
  ReadyQueue batch_;  // What is left of the round that runs.
  ReadyQueue round_end_;
  ReadyQueue reported_;  // Readers and writers that were found ready ahead of a poll.
  int outsiders_ = 0;

  TimePoint last_poll_ = created_at_;
  LagHistogram lag_;
  absl::Duration max_lag_;

  TimerWheel wheel_;
  SlabPool slab_pool_;
  internal::FdWatcher watcher_;
  internal::SignalWatcher signals_;
  internal::LoopOwnedList owned_;
  Executor* default_executor_;
  std::unique_ptr<Executor> own_executor_;
  bool executor_shut_down_ = false;
  ExceptionHandler exception_handler_;
  absl::Duration slow_callback_duration_ = absl::Milliseconds(100);
  internal::Observation observation_{this};
};

// The loop that is running on this thread.
// Errors: RuntimeError "no running event loop".
EventLoop& GetRunningLoop();
// The same, or null.
EventLoop* GetRunningLoopOrNull();

}  // namespace weft

#endif  // WEFT_LOOP_EVENT_LOOP_H_

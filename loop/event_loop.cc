// Copyright 2026 The weft Authors.
// SPDX-License-Identifier: Apache-2.0

// The loop itself. RunUntilStopped() is what it all comes down to; the rest is how a
// run begins and ends.

#include "weft/loop/event_loop.h"

#include <algorithm>
#include <cstdlib>
#include <utility>

#include "absl/base/attributes.h"
#include "absl/base/optimization.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "absl/strings/str_join.h"
#include "weft/core/async_generator.h"
#include "weft/core/errors.h"
#include "weft/core/log.h"
#include "weft/core/observer.h"
#include "weft/executor/thread_pool.h"
#include "weft/loop/stack_sampler.h"
#include "weft/poller/poller_registry.h"

namespace weft {
namespace {

constinit thread_local EventLoop* running_loop = nullptr;

// With a kernel operation pending, virtual time stands still for so long: the
// loopback may deliver late.
constexpr absl::Duration kLoopbackPatience = absl::Milliseconds(5);
// And so long, if all that is left is to give up: where a busy machine has to schedule
// another process for each delivery, as under Wine, it may well be later.
constexpr absl::Duration kLastPatience = absl::Milliseconds(200);

// So many due timers are queued at once: they stay in the first cache until they run.
constexpr size_t kTimersAtOnce = 64;

bool DebugByEnvironment() {
  const char* value = std::getenv("WEFT_DEBUG");
  return value != nullptr && *value != '\0' && std::string_view(value) != "0";
}

}  // namespace

// One run: while it lives, this is the thread's running loop.
class EventLoop::RunScope {
 public:
  explicit RunScope(EventLoop* loop)
      : loop_(loop),
        running_(loop),
        previous_(std::exchange(running_loop, loop)),
        previous_shared_(std::exchange(internal::running_shared, loop->shared_.get())) {
    loop_->running_ = true;
    loop_->core()->SetEmbedded(false);
    if (internal::LoopProgress* progress = loop_->observation_.progress()) {
      progress->SetThread(internal::StackSampler::CurrentThread());
    }
  }
  ~RunScope() {
    running_loop = previous_;
    internal::running_shared = previous_shared_;
    loop_->running_ = false;
    loop_->stopping_ = false;
    if (loop_->is_embedded_) loop_->SleepInForeignLoop();
  }

 private:
  EventLoop* loop_;
  Running running_;
  EventLoop* previous_;
  internal::LoopShared* previous_shared_;
};

absl::StatusOr<std::unique_ptr<EventLoop>> EventLoop::Create(LoopOptions options) {
  std::unique_ptr<Poller> owned;
  Poller* poller = options.environment.poller;
  if (poller == nullptr) {
    absl::StatusOr<std::unique_ptr<Poller>> made = MakePoller(options.poller);
    if (!made.ok()) return made.status();
    owned = *std::move(made);
    poller = owned.get();
  }
  return std::unique_ptr<EventLoop>(new EventLoop(options, std::move(owned), poller));
}

EventLoop::EventLoop(const LoopOptions& options, std::unique_ptr<Poller> owned_poller,
                     Poller* poller)
    : clock_(options.environment.clock != nullptr ? options.environment.clock : SteadyClock::Get()),
      is_steady_(clock_->IsSteady()),
      virtual_clock_(clock_->AsVirtual()),
      owned_poller_(std::move(owned_poller)),
      poller_(poller),
      socket_api_(options.environment.socket_api != nullptr ? options.environment.socket_api
                                                            : SystemSocketApi()),
      spawner_(options.environment.spawner),
      resolver_(options.environment.resolver),
      shared_(std::make_shared<internal::LoopShared>(this, poller->MakeWaker())),
      may_skip_polls_(is_steady_ && options.environment.poller == nullptr),
      created_at_(clock_->Now()),
      pacer_(created_at_),
      wheel_(created_at_),
      watcher_(this, poller),
      signals_(
          this, shared_,
          options.environment.signals != nullptr ? options.environment.signals : SystemSignals()),
      default_executor_(options.environment.executor) {
  SetDebug(options.debug || DebugByEnvironment());
}

EventLoop::~EventLoop() {
  if (!closed()) {
    internal::Log(LogSeverity::kWarning, absl::StrCat("unclosed event loop ", ToString()));
    Close();
  }
}

// -- Running.

// A poll is a system call, and a round may be a few nanoseconds; so a round may
// do without if something is ready anyway. Never the first of a run, nor one
// that is to stop, nor one in which a timer is known to be due: timers enter the
// queue behind the I/O of a poll, and a skipped one would be late by a round.
inline bool EventLoop::MaySkipPoll() { return !ready().empty() && !pacer_.MustPoll(); }

// In the order in which asyncio collects what is ready: what other threads posted,
// then what I/O completed, then the timers that are due, of which there are none.
inline void EventLoop::CollectWithoutPoll() {
  ReadyQueue& ready = this->ready();
  shared_->inbox().DrainTo(&ready);
  if (ABSL_PREDICT_FALSE(signals_.has_pending())) signals_.QueuePending();
  poller_->Collect(&ready);
}

void EventLoop::Poll(TimePoint limit) {
  ReadyQueue done;
  poller_->Collect(&done);
  watcher_.BeforePoll(&reported_);
  done.Splice(&reported_);
  const bool may_wait = ready().empty() && done.empty() && !stopping_ && !signals_.has_pending();

  absl::Status status;
  if (virtual_clock_ != nullptr) {
    status = PollVirtually(may_wait, limit, &done);
  } else {
    TimePoint deadline = TimePoint::InfinitePast();
    if (may_wait && shared_->BeginSleep()) {
      deadline = SteadyMoment(std::min(limit, wheel_.NextWake()));
      if (is_steady_) pacer_.OnSleep();
    }
    const bool is_timed = debug();
    const TimePoint begin = is_timed ? SteadyClock::Read() : TimePoint();
    status = poller_->Wait(deadline, &done);
    if (is_timed) ReportSlowPoll(begin, deadline, SteadyClock::Read());
    shared_->EndSleep();
  }
  if (!status.ok()) throw RuntimeError(absl::StrCat("the poller failed: ", status.ToString()));

  const TimePoint now = Now();
  shared_->inbox().DrainTo(&ready());
  if (signals_.has_pending()) signals_.QueuePending();
  ready().Splice(&done);
  QueueDueTimers(now);
  last_poll_ = now;
  pacer_.OnPoll(now);
  if (!may_skip_polls_ || next_wake_ <= now) pacer_.Demand();
}

// The first that is due tells by how much the loop is late.
void EventLoop::QueueDueTimers(TimePoint now) {
  Runnable* const last = ready().back();
  wheel_.Expire(now);
  wheel_.TakeDue(kTimersAtOnce, &ready());
  next_wake_ = wheel_.NextWake();
  Runnable* const first = last == nullptr ? ready().front() : ready().Next(last);
  if (first == nullptr) return;
  // One that was armed since the last poll, for a moment before, waited no longer.
  const absl::Duration lag = now - std::max(static_cast<Timer*>(first)->deadline(), last_poll_);
  lag_.Add(lag);
  max_lag_ = std::max(max_lag_, lag);
}

// One that came back later than it was to: the machine is busy, or the kernel is.
void EventLoop::ReportSlowPoll(TimePoint begin, TimePoint expected, TimePoint end) const {
  if (expected == TimePoint::InfiniteFuture()) return;
  const TimePoint due = std::max(begin, expected);
  if (end - due < slow_callback_duration_) return;
  internal::Log(LogSeverity::kWarning, absl::StrFormat("poll %.3f ms took %.3f ms",
                                                       absl::ToDoubleMilliseconds(due - begin),
                                                       absl::ToDoubleMilliseconds(end - begin)));
}

// A moment of the loop's clock on the steady clock, which pollers go by.
TimePoint EventLoop::SteadyMoment(TimePoint moment) const {
  if (is_steady_ || moment == TimePoint::InfiniteFuture()) return moment;
  return SteadyClock::Read() + (moment - clock_->Now());
}

// Time moves only if nothing at all can happen at this moment, and then it moves
// to the very next deadline.
absl::Status EventLoop::PollVirtually(bool may_wait, TimePoint limit, ReadyQueue* done) {
  absl::Status status = poller_->Wait(TimePoint::InfinitePast(), done);
  const auto found_something = [this, done, &status] {
    return !status.ok() || !done->empty() || !shared_->inbox().empty() || signals_.has_pending();
  };
  if (!may_wait || found_something()) return status;

  if (outsiders_ > 0) {  // Somebody works for the loop in real time.
    const TimePoint forever = TimePoint::InfiniteFuture();
    status = poller_->Wait(shared_->BeginSleep() ? forever : TimePoint::InfinitePast(), done);
    shared_->EndSleep();
    return status;
  }
  const TimePoint next = std::min(limit, wheel_.NextDeadline());
  const bool is_deadlock = next == TimePoint::InfiniteFuture();
  if (poller_->HasPending()) {
    const TimePoint until = SteadyClock::Read() + (is_deadlock ? kLastPatience : kLoopbackPatience);
    do {
      status = poller_->Wait(shared_->BeginSleep() ? until : TimePoint::InfinitePast(), done);
      shared_->EndSleep();
    } while (!found_something() && SteadyClock::Read() < until);
    if (found_something()) return status;
  }
  if (is_deadlock) ThrowDeadlock();
  virtual_clock_->AdvanceTo(next);
  return status;
}

// Takes what is ready now and leaves what the callbacks add for the next round:
// so a callback that queues itself for ever starves neither I/O nor timers. One
// may still cancel a later one of this round, which unlinks itself from the batch.
// Returns how many there were. REQUIRES: something is ready.
int EventLoop::RunReady() {
  ABSL_ASSUME(!ready().empty());
  batch_.Splice(&ready());
  return RunBatch();
}

inline int EventLoop::RunBatch() {
  int count = 0;
  while (Runnable* next = batch_.PopFront()) {
    next->Run();
    ++count;
  }
  return count;
}

// The due timers that were too many to be queued at once: they are the last of their
// round.
int EventLoop::RunDueTimers() {
  int count = 0;
  while (wheel_.has_due()) {
    wheel_.TakeDue(kTimersAtOnce, &batch_);
    count += RunBatch();
  }
  return count;
}

int EventLoop::RunRound() {
  int count = 0;
  if (ABSL_PREDICT_FALSE(core()->guarded)) {
    wheel_.TakeDue(wheel_.due_count(), &ready());
    batch_.Splice(&ready());
    count = observation_.RunBatch(&batch_);
  } else if (!ready().empty()) {
    count = RunReady();
    if (ABSL_PREDICT_FALSE(wheel_.has_due())) count += RunDueTimers();
  }
  EndRound(count);
  return count;
}

ABSL_ATTRIBUTE_ALWAYS_INLINE inline void EventLoop::EndRound(int count) {
  pacer_.OnCallbacks(count);
  if (ABSL_PREDICT_FALSE(!round_end_.empty())) RunRoundEnd();
}

void EventLoop::RunRoundEnd() {
  while (Runnable* next = round_end_.PopFront()) next->Run();
}

// Rounds that are nothing but callbacks, as most are while a loop is busy, and few of
// them, which cost less than what a round has to look at: so that is here in a straight
// line. The first round that is not so is left to the caller as it is.
void EventLoop::RunPlainRounds() {
  const internal::SchedulerCore& core = *this->core();
  ReadyQueue& ready = this->ready();
  const Inbox& inbox = shared_->inbox();
  const ReadyQueue& ended = poller_->ended();
  while (!stopping_ && !core.guarded && !ready.empty() && !pacer_.MustPoll() &&
         inbox.looks_empty() && !signals_.has_pending() && ended.empty()) {
    int count = 1;
    if (ready.has_one()) {
      ready.PopOnly()->Run();
    } else {
      count = RunReady();
    }
    EndRound(count);
  }
}

void EventLoop::RunForever() {
  CheckMayRun();
  RunScope scope(this);
  RunUntilStopped();
  ThrowIfInterrupted();
}

void EventLoop::RunUntilStopped() {
  Poll(TimePoint::InfiniteFuture());
  RunRound();
  while (true) {
    RunPlainRounds();
    if (stopping_) return;
    if (MaySkipPoll()) {
      CollectWithoutPoll();
    } else {
      Poll(TimePoint::InfiniteFuture());
    }
    RunRound();
  }
}

void EventLoop::ThrowIfInterrupted() {
  if (ABSL_PREDICT_FALSE(std::exchange(interrupted_, false))) throw KeyboardInterrupt();
}

bool EventLoop::RunOnce(absl::Duration max_wait) {
  CheckMayRun();
  RunScope scope(this);
  const TimePoint limit =
      max_wait <= absl::ZeroDuration() ? TimePoint::InfinitePast() : Now() + max_wait;
  Poll(limit);
  const bool ran = RunRound() > 0;
  ThrowIfInterrupted();
  return ran;
}

NativeHandle EventLoop::BackendFd() {
  const NativeHandle handle = poller_->BackendFd();
  if (handle != kInvalidHandle && !closing_) {
    is_embedded_ = true;
    if (!running_) SleepInForeignLoop();
  }
  return handle;
}

// From now on whoever changes something must wake it: posts, and calls from outside.
void EventLoop::SleepInForeignLoop() {
  core()->SetEmbedded(true);
  watcher_.BeforePoll(&reported_);
  const bool is_idle = ready().empty() && round_end_.empty() && reported_.empty();
  poller_->ArmBackend(is_idle ? SteadyMoment(wheel_.NextWake()) : TimePoint::InfinitePast());
  // In this order: arming may take a wake that came meanwhile, but not a post.
  if (!shared_->BeginSleep()) poller_->ArmBackend(TimePoint::InfinitePast());
}

// At the end of the loop a post is dropped, and the task with it.
void EventLoop::QueueFromAnyThread(Runnable* runnable) {
  if (shared_->IsRunningHere()) return ready().PushBack(runnable);
  try {
    Ref().Post([this, runnable] { ready().PushBack(runnable); });
  } catch (const RuntimeError&) {
    // Closed.
  }
}

void EventLoop::CheckMayRun() const {
  if (closing_) throw RuntimeError("Event loop is closed");
  if (running_) throw RuntimeError("This event loop is already running");
  if (Scheduler::Current() != nullptr) {
    throw RuntimeError("Cannot run the event loop while another loop is running");
  }
}

void EventLoop::ThrowStoppedEarly() {
  throw RuntimeError("Event loop stopped before Future completed.");
}

void EventLoop::ThrowOtherLoopsFuture() {
  throw ValueError(
      "The future belongs to a different loop than the one specified as the loop argument");
}

void EventLoop::ThrowDeadlock() {
  std::string text = "nothing is ready and no timer is pending";
  for (const TaskRef& task : AllTasks()) absl::StrAppend(&text, "\n  ", task.ToString());
  throw RuntimeError(text);
}

// -- Closing.

void EventLoop::Close() {
  if (running_) throw RuntimeError("Cannot close a running event loop");
  if (std::exchange(closing_, true)) return;
  is_embedded_ = false;
  core()->SetEmbedded(false);
  ReportPendingTasks();
  std::vector<std::string> pending;
  if (debug()) DescribePending(&pending);
  watcher_.Close();
  signals_.Close();
  ReadyQueue posted;
  shared_->inbox().Close(&posted);
  ready().Splice(&posted);
  DrainPoller();
  SetClosed();
  // Their memory is not the kernel's any more; so the frames may go.
  while (internal::TaskLink* link = core()->tasks.front()) {
    internal::TaskState::FromLink(link)->DestroyFrames();
  }
  owned_.Clear();
  DrainPoller();  // What destructors retired.
  wheel_.DisarmAll(&ready());
  if (debug()) {
    DescribeCallbacks(&pending);
    if (!pending.empty()) {
      internal::Log(LogSeverity::kWarning,
                    absl::StrCat("event loop closed with what was pending:\n  ",
                                 absl::StrJoin(pending, "\n  ")));
    }
  }
  DropReady();
  if (own_executor_ != nullptr) {
    ExecutorShutdown how;
    how.wait = ExecutorShutdown::Wait::kNo;
    own_executor_->Shutdown(std::move(how));
  }
}

// Ends all kernel operations and waits until the kernel has let go of their
// memory. What they belong to is told, and may queue tasks; those do not run.
void EventLoop::DrainPoller() {
  poller_->CancelAll();
  ReadyQueue done;
  while (poller_->Collect(&done) || poller_->HasPending()) {
    if (done.empty() && !poller_->Wait(TimePoint::InfiniteFuture(), &done).ok()) break;
    while (Runnable* next = done.PopFront()) next->Run();
    poller_->CancelAll();  // What that may have started.
  }
}

void EventLoop::DropReady() {
  while (Runnable* next = ready().PopFront()) {
    if (internal::CallbackSlot::IsSlot(next)) {
      static_cast<internal::CallbackSlot*>(next)->Drop();
    } else if (internal::Observer::IsObserver(next)) {
      static_cast<internal::Observer*>(next)->Drop();
    }
  }
}

void EventLoop::ReportPendingTasks() {
  for (TaskRef& task : AllTasks()) {
    ExceptionContext context("Task was destroyed but it is pending!");
    context.location = task.state()->created_at();
    context.future = std::move(task);
    CallExceptionHandler(context);
  }
}

// What a closing loop ends, besides tasks.
void EventLoop::DescribePending(std::vector<std::string>* texts) {
  *texts = watcher_.DescribeAll();
  for (std::string& text : signals_.DescribeAll()) texts->push_back(std::move(text));
  if (outsiders_ > 0)
    texts->push_back(absl::StrCat(outsiders_, " jobs in other threads or processes"));
}

// What is in the queue when the frames are gone, with which what is theirs has gone:
// the callbacks of users.
void EventLoop::DescribeCallbacks(std::vector<std::string>* texts) {
  for (Runnable* next = ready().front(); next != nullptr; next = ready().Next(next)) {
    if (!internal::CallbackSlot::IsSlot(next)) continue;
    auto* slot = static_cast<internal::CallbackSlot*>(next);
    texts->push_back(absl::StrCat("<Handle created at ", weft::ToString(slot->location()), ">"));
  }
}

std::vector<TaskRef> EventLoop::AllTasks() {
  CheckThread();
  return internal::TasksOf(*core());
}

void EventLoop::DumpTasks(std::ostream& out) {
  CheckThread();
  internal::DumpTasksOf(*core(), out);
}

Coro<void> EventLoop::ShutdownAsyncGenerators() { return CloseAsyncGenerators(*this); }

// -- Executors.

Executor& EventLoop::DefaultExecutor() {
  CheckMayCall();
  if (executor_shut_down_) throw RuntimeError("Executor shutdown has been called");
  if (default_executor_ != nullptr) return *default_executor_;
  if (own_executor_ == nullptr) own_executor_ = std::make_unique<ThreadPool>();
  return *own_executor_;
}

Coro<void> EventLoop::ShutdownDefaultExecutor() {
  executor_shut_down_ = true;
  if (own_executor_ == nullptr) co_return;
  Future<void> ended = CreateFuture<void>();
  auto* waiting = owned_.Add(std::make_unique<internal::JobOnLoop<void>>(this, ended));
  ExecutorShutdown how;
  how.wait = ExecutorShutdown::Wait::kNo;
  how.ended = [ref = Ref(), waiting] {
    try {
      ref.Post([waiting] {
        Outcome<void> outcome;
        outcome.Emplace();
        waiting->Complete(std::move(outcome));
      });
    } catch (const RuntimeError&) {
      // Closed: nobody waits any more.
    }
  };
  own_executor_->Shutdown(std::move(how));
  co_await ended;
}

namespace internal {

LoopRef RefOf(EventLoop& loop) { return loop.Ref(); }
Scheduler& SchedulerOf(EventLoop& loop) { return loop; }
LoopOwnedList& OwnedBy(EventLoop& loop) { return loop.owned(); }
void AddOutsiderTo(EventLoop& loop) { loop.AddOutsider(); }
void RemoveOutsiderFrom(EventLoop& loop) { loop.RemoveOutsider(); }

}  // namespace internal

// -- Descriptors and signals.

absl::Status EventLoop::Watch(internal::FdWatcher::Direction direction, NativeHandle handle,
                              absl::AnyInvocable<void()> callback, const SourceLocation& location) {
  CheckMayCall();
  return watcher_.Add(direction, handle, std::move(callback), location);
}

bool EventLoop::RemoveReader(NativeHandle handle) {
  CheckThread();
  return watcher_.Remove(internal::FdWatcher::Direction::kRead, handle);
}

bool EventLoop::RemoveWriter(NativeHandle handle) {
  CheckThread();
  return watcher_.Remove(internal::FdWatcher::Direction::kWrite, handle);
}

absl::Status EventLoop::AddHandler(int signal, absl::AnyInvocable<void()> callback,
                                   const SourceLocation& location) {
  CheckMayCall();
  return signals_.Add(signal, std::move(callback), location);
}

bool EventLoop::RemoveSignalHandler(int signal) {
  CheckThread();
  return signals_.Remove(signal);
}

// -- Errors and debugging.

void EventLoop::CallExceptionHandler(const ExceptionContext& context) noexcept {
  if (exception_handler_ == nullptr) return DefaultExceptionHandler(context);
  try {
    const ExceptionHandler handler = exception_handler_;  // It may replace itself.
    handler(*this, context);
  } catch (const KeyboardInterrupt&) {
    if (!Interrupt()) DefaultExceptionHandler(context);
  } catch (...) {
    ExceptionContext failure("Unhandled error in exception handler");
    failure.exception = std::current_exception();
    DefaultExceptionHandler(failure);
    DefaultExceptionHandler(context);
  }
}

void EventLoop::DefaultExceptionHandler(const ExceptionContext& context) noexcept {
  try {
    internal::Log(LogSeverity::kError, weft::ToString(context));
  } catch (...) {  // An exception that cannot be put into words.
    internal::Log(LogSeverity::kError, "an error that cannot be described");
  }
}

void EventLoop::AddInstrument(Instrument* instrument) {
  CheckThread();
  observation_.Add(instrument);
}

bool EventLoop::RemoveInstrument(Instrument* instrument) {
  CheckThread();
  return observation_.Remove(instrument);
}

LoopStats EventLoop::Stats() const {
  CheckThread();
  LoopStats stats;
  stats.rounds = pacer_.rounds();
  stats.polls = pacer_.polls();
  stats.callbacks = pacer_.callbacks();
  stats.tasks_created = core()->tasks_created;
  stats.lag = lag_;
  stats.max_lag = max_lag_;
  stats.idle = pacer_.asleep();
  stats.uptime = Now() - created_at_;
  stats.ready = core()->ready.CountSlowly();
  stats.timers = wheel_.size();
  stats.tasks = core()->tasks.CountSlowly();
  return stats;
}

std::string EventLoop::ToString() const {
  return absl::StrCat("<EventLoop ", poller_name(), " running=", running_, " closed=", closed(),
                      " debug=", debug(), ">");
}

EventLoop& GetRunningLoop() {
  if (running_loop == nullptr) throw RuntimeError("no running event loop");
  return *running_loop;
}

EventLoop* GetRunningLoopOrNull() { return running_loop; }

}  // namespace weft

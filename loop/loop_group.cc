// Copyright 2026 The weft Authors.
// SPDX-License-Identifier: Apache-2.0

// Each thread runs a Runner with one coroutine, the host, which waits until the group
// stops, cancels the mains that its loop has, waits for them, and returns; what comes
// then is Runner::Close()'s. Everything of a loop is touched by its own thread only, and
// reaches it by a post; what the threads share, counts and the first error, is behind a
// mutex that nobody holds while anything of the user's runs.

#include "weft/loop/loop_group.h"

#include <system_error>
#include <thread>

#include "absl/base/macros.h"
#include "absl/strings/str_cat.h"
#include "weft/core/log.h"
#include "weft/core/no_throw.h"
#include "weft/core/shield.h"
#include "weft/core/wait.h"
#include "weft/executor/thread_name.h"
#include "weft/loop/processors.h"
#include "weft/loop/run.h"
#include "weft/sync/event.h"

namespace weft {
namespace {

LoopGroupOptions Checked(LoopGroupOptions options) {
  if (options.loops < 1) {
    throw ValueError(absl::StrCat("loops must be greater than 0, not ", options.loops));
  }
  if (options.environment.poller != nullptr) {
    throw ValueError("environment.poller: a poller cannot serve several loops");
  }
  if (options.environment.clock != nullptr) {
    throw ValueError("environment.clock: a clock cannot serve several loops");
  }
  return options;
}

}  // namespace

LoopGroupOptions::LoopGroupOptions() : loops(static_cast<int>(AvailableProcessors().size())) {}

// One loop, and its thread.
struct LoopGroup::Member {
  explicit Member(int number) : index(number) {}

  const int index;
  std::thread thread;
  LoopRef ref;                      // Set before `made_`.
  std::exception_ptr making_error;  // The same.

  // -- For the loop's thread only.
  bool is_stopping = false;
  bool is_aborted = false;
  Event changed;  // What the host waits for.
  List<RunningMain> mains;
};

LoopGroup::LoopGroup(LoopGroupOptions options)
    : options_(Checked(std::move(options))),
      made_(options_.loops),
      ended_(std::make_shared<internal::ThreadFutureState<void>>(LoopRef())),
      running_(options_.loops) {
  for (int i = 0; i < options_.loops; ++i) members_.push_back(std::make_unique<Member>(i));
  for (const auto& member : members_) {
    try {
      member->thread = std::thread([this, m = member.get()] { RunMember(m); });
    } catch (const std::system_error& error) {
      member->making_error = std::make_exception_ptr(
          RuntimeError(absl::StrCat("no thread for loop ", member->index, ": ", error.what())));
      made_.count_down();
      EndMember();
    }
  }
  made_.wait();
  for (const auto& member : members_) {
    if (member->making_error == nullptr) continue;
    Stop();
    JoinThreads();
    std::rethrow_exception(member->making_error);
  }
}

LoopGroup::~LoopGroup() {
  for (const auto& member : members_) ABSL_HARDENING_ASSERT(!member->ref.IsRunningHere());
  Stop();
  JoinThreads();
  if (error_ == nullptr || is_error_known_) return;
  internal::Log(LogSeverity::kError,
                absl::StrCat("a LoopGroup ended with an error that was never retrieved: ",
                             DescribeException(error_)));
}

const LoopRef& LoopGroup::loop(int index) const {
  ABSL_HARDENING_ASSERT(index >= 0 && index < size());
  return members_[static_cast<size_t>(index)]->ref;
}

// -- The threads.

void LoopGroup::RunMember(Member* member) {
  internal::SetThreadName(options_.thread_name, member->index);
  if (options_.pin_threads) {
    const std::vector<int> processors = AvailableProcessors();
    PinThisThread(processors[static_cast<size_t>(member->index) % processors.size()]);
  }
  try {
    Runner runner(options_);
    try {
      member->ref = runner.GetLoop().Ref();
    } catch (...) {
      member->making_error = std::current_exception();
    }
    made_.count_down();
    if (member->making_error == nullptr) {
      runner.Run(Host(member));
      runner.Close();
    }
  } catch (...) {
    Fail(std::current_exception());
  }
  EndMember();
}

void LoopGroup::EndMember() {
  {
    std::lock_guard<std::mutex> lock(mutex_);
    if (--running_ > 0) return;
  }
  ended_->Complete([](Outcome<void>& outcome) { outcome.Emplace(); });
}

Coro<void> LoopGroup::Host(Member* member) {
  while (!member->is_stopping) {
    member->changed.Clear();
    co_await member->changed.Wait();
  }
  std::vector<TaskRef> tasks;
  for (RunningMain* main = member->mains.front(); main != nullptr;
       main = member->mains.Next(main)) {
    tasks.push_back(main->task());
  }
  for (TaskRef& task : tasks) task.Cancel();
  while (!member->mains.empty() && !member->is_aborted) {
    member->changed.Clear();
    co_await member->changed.Wait();
  }
}

void LoopGroup::JoinThreads() {
  std::lock_guard<std::mutex> lock(join_mutex_);
  for (const auto& member : members_) {
    if (member->thread.joinable()) member->thread.join();
  }
}

// -- The mains.

LoopGroup::RunningMain::RunningMain(LoopGroup* group, int index)
    : member_(group->members_[static_cast<size_t>(index)].get()), task_(CurrentTask()) {
  member_->mains.PushBack(this);
  if (member_->is_stopping) task_.Cancel();
}

LoopGroup::RunningMain::~RunningMain() {
  Unlink();
  if (member_->mains.empty()) member_->changed.Set();
}

void LoopGroup::BeginStart() {
  std::lock_guard<std::mutex> lock(mutex_);
  if (is_stopping_) throw RuntimeError("LoopGroup is stopped");
  ++starting_;
  mains_ += size();
}

void LoopGroup::EndStart() {
  bool is_stopping, is_aborted;
  {
    std::lock_guard<std::mutex> lock(mutex_);
    if (--starting_ > 0) return;
    is_stopping = is_stopping_;
    is_aborted = is_aborted_;
  }
  if (is_stopping) PostStop();
  if (is_aborted) PostAbort();
}

void LoopGroup::EndMain() {
  bool is_last;
  {
    std::lock_guard<std::mutex> lock(mutex_);
    is_last = --mains_ == 0 && ends_alone_;
  }
  if (is_last) Stop();
}

void LoopGroup::Fail(std::exception_ptr error) {
  {
    std::lock_guard<std::mutex> lock(mutex_);
    if (error_ == nullptr) error_ = std::move(error);
  }
  Stop();
}

// -- The end.

// A loop that has ended by itself, with an error, has nothing to be told.
template <class F>
void LoopGroup::PostToAll(F change) {
  for (const auto& member : members_) {
    if (!member->ref) continue;
    try {
      member->ref.Post([change, m = member.get()] {
        change(m);
        m->changed.Set();
      });
    } catch (const RuntimeError&) {
    }
  }
}

void LoopGroup::Stop() {
  {
    std::lock_guard<std::mutex> lock(mutex_);
    if (std::exchange(is_stopping_, true)) return;
    if (starting_ > 0) return;  // EndStart() does it.
  }
  PostStop();
}

void LoopGroup::PostStop() {
  PostToAll([](Member* member) { member->is_stopping = true; });
}

void LoopGroup::Abort() {
  Stop();
  {
    std::lock_guard<std::mutex> lock(mutex_);
    if (std::exchange(is_aborted_, true)) return;
    if (starting_ > 0) return;
  }
  PostAbort();
}

void LoopGroup::PostAbort() {
  PostToAll([](Member* member) { member->is_aborted = true; });
}

void LoopGroup::Finish() {
  {
    std::lock_guard<std::mutex> lock(mutex_);
    ends_alone_ = true;
    if (mains_ > 0) return;
  }
  Stop();
}

void LoopGroup::CheckMayWait(const char* caller) const {
  for (const auto& member : members_) {
    if (member->ref.IsRunningHere()) {
      throw RuntimeError(absl::StrCat("LoopGroup::", caller, "() would wait for itself"));
    }
  }
}

void LoopGroup::ThrowIfFailed() {
  std::lock_guard<std::mutex> lock(mutex_);
  if (error_ == nullptr) return;
  is_error_known_ = true;
  std::rethrow_exception(error_);
}

void LoopGroup::Join() {
  CheckMayWait("Join");
  Finish();
  ThreadFuture<void>(ended_).Result();
  JoinThreads();
  ThrowIfFailed();
}

// The future is shielded: there is no way to cancel what it stands for.
Coro<void> LoopGroup::WaitDone() {
  CheckMayWait("WaitDone");
  Finish();
  Future<void> ended = WrapFuture(ThreadFuture<void>(ended_));
  Outcome<void> first = co_await NoThrow(Shield(ended));
  if (!first.has_value()) {
    Stop();
    Outcome<void> second = co_await NoThrow(Shield(ended));
    if (!second.has_value()) Abort();
    first.value();
  }
  JoinThreads();
  ThrowIfFailed();
}

Coro<void> LoopGroup::Listen(SignalReceiver* receiver, int* first) {
  *first = co_await receiver->Next();
  Stop();
  co_await receiver->Next();
  Abort();
}

Coro<int> LoopGroup::RunUntilSignal(SignalSet signals) {
  SignalReceiver receiver(signals);
  int first = 0;
  Task<void> listening = CreateTask(Listen(&receiver, &first));
  Outcome<void> done = co_await NoThrow(WaitDone());
  listening.Cancel();
  std::vector<Task<void>> tasks(1, listening);
  co_await Wait(tasks);
  done.value();
  co_return first;
}

}  // namespace weft

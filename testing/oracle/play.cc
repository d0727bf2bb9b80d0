// Copyright 2026 The weft Authors.
// SPDX-License-Identifier: Apache-2.0

// A player of the oracle's language, as close to the words of `statement()` and
// `plain()` in asyncio_oracle.py as the two languages allow: whoever changes one
// reads the other.
//
// Two things look different. A coroutine of C++ cannot wait in a catch block, so
// what a block threw is taken as an outcome, by NoThrow(), and thrown on later.
// And a variable holds a variant of what Python tells apart when it is used; what
// Python answers with a TypeError or a KeyError is a Misuse here.

#include "weft/testing/oracle/play.h"

#include <algorithm>
#include <cstdint>
#include <deque>
#include <exception>
#include <map>
#include <memory>
#include <stdexcept>
#include <string>
#include <string_view>
#include <type_traits>
#include <utility>
#include <variant>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "absl/time/time.h"
#include "weft/core/clock.h"
#include "weft/core/coro.h"
#include "weft/core/errors.h"
#include "weft/core/future.h"
#include "weft/core/gather.h"
#include "weft/core/log.h"
#include "weft/core/no_throw.h"
#include "weft/core/outcome.h"
#include "weft/core/shield.h"
#include "weft/core/sleep.h"
#include "weft/core/task.h"
#include "weft/core/task_group.h"
#include "weft/core/timeout.h"
#include "weft/core/wait.h"
#include "weft/core/wait_for.h"
#include "weft/loop/event_loop.h"
#include "weft/sync/barrier.h"
#include "weft/sync/condition.h"
#include "weft/sync/event.h"
#include "weft/sync/lock.h"
#include "weft/sync/queue.h"
#include "weft/sync/semaphore.h"

namespace weft::oracle {
namespace {

// What `raise NAME` throws.
class Failure : public std::exception {
 public:
  explicit Failure(std::string name) : name_(std::move(name)) {}
  const std::string& name() const { return name_; }

 private:
  std::string name_;
};

// What `return N` throws.
class ReturnSignal : public std::exception {
 public:
  explicit ReturnSignal(int value) : value_(value) {}
  int value() const { return value_; }

 private:
  int value_;
};

// A variable that is not there, or is not of the kind a statement is for.
class Misuse : public std::exception {};

// The result of a gather of unlike things, in words.
struct Shown {
  Shown() {}
  explicit Shown(std::string words) : text(std::move(words)) {}

  std::string text;
};

// -- Values and errors in the words of a trace.

std::string Describe(const std::exception_ptr& error) {
  try {
    std::rethrow_exception(error);
  } catch (const ExceptionGroup& group) {
    return absl::StrCat("group(",
                        absl::StrJoin(group.exceptions(), " ",
                                      [](std::string* out, const std::exception_ptr& inner) {
                                        absl::StrAppend(out, Describe(inner));
                                      }),
                        ")");
  } catch (const CancelledError&) {
    return "cancelled";
  } catch (const TimeoutError&) {
    return "timeout";
  } catch (const BrokenBarrierError&) {
    return "broken";
  } catch (const Failure& failure) {
    return failure.name();
  } catch (...) {
    return "misuse";
  }
}

std::string_view YesOrNo(bool value) { return value ? "yes" : "no"; }

std::string Show(int value) { return absl::StrCat(value); }
std::string Show(const Shown& value) { return value.text; }
template <class T>
std::string Show(const std::vector<T>& values);
template <class T>
std::string Show(const Outcome<T>& outcome) {
  return outcome.has_value() ? Show(outcome.value())
                             : absl::StrCat("!", Describe(outcome.exception()));
}
template <class T>
std::string Show(const std::vector<T>& values) {
  return absl::StrCat(
      "[",
      absl::StrJoin(values, " ",
                    [](std::string* out, const T& value) { absl::StrAppend(out, Show(value)); }),
      "]");
}

template <class E>
bool Holds(const std::exception_ptr& error) {
  try {
    std::rethrow_exception(error);
  } catch (const E&) {
    return true;
  } catch (...) {
    return false;
  }
}

// -- Variables.

using Numbers = std::vector<int>;
using Outcomes = std::vector<Outcome<int>>;

using Variable = std::variant<Future<int>, Future<Numbers>, Future<Outcomes>, Future<Shown>, Handle,
                              Event*, Lock*, Semaphore*, Condition*, Queue<int>*, Barrier*>;

template <class T>
struct IsFuture : std::false_type {};
template <class T>
struct IsFuture<Future<T>> : std::true_type {};

// Calls `visit` with the future in `variable`. Errors: Misuse if it holds none.
template <class Visit>
auto WithFuture(const Variable& variable, Visit visit) {
  using Result = decltype(visit(std::get<0>(variable)));
  return std::visit(
      [&](const auto& value) -> Result {
        if constexpr (IsFuture<std::remove_cvref_t<decltype(value)>>::value) {
          return visit(value);
        } else {
          throw Misuse();
        }
      },
      variable);
}

// The children of a gather of unlike futures: api.h's Gather() takes those of one
// type, or a number of them that is known at compile time.
template <bool kCollect>
class UnlikeChildren {
 public:
  using Result = Shown;

  explicit UnlikeChildren(const std::vector<Variable>& variables)
      : variables_(variables), observers_(new internal::Observer[variables.size()]) {
    for (size_t i = 0; i < variables.size(); ++i) {
      observers_[i].set_target(internal::FutureStateRef(
          WithFuture(variables[i], [](const auto& future) { return future.state(); })));
    }
  }

  internal::Observer* observers() { return observers_.get(); }
  size_t count() const { return variables_.size(); }

  Shown Take() {
    std::vector<Shown> values;
    for (const Variable& variable : variables_) {
      values.push_back(WithFuture(variable, [](const auto& future) {
        if (future.Cancelled()) return Shown("!cancelled");
        const std::exception_ptr error = future.Exception();
        return Shown(error != nullptr ? absl::StrCat("!", Describe(error)) : Show(future.Result()));
      }));
    }
    return Shown(Show(values));
  }

 private:
  std::vector<Variable> variables_;
  std::unique_ptr<internal::Observer[]> observers_;
};

template <bool kCollect>
Future<Shown> GatherUnlike(const std::vector<Variable>& variables) {
  internal::SchedulerCore* scheduler =
      WithFuture(variables[0], [](const auto& future) { return future.state()->scheduler(); });
  return internal::GatherState<Shown, UnlikeChildren<kCollect>>::Make(
      scheduler, SourceLocation::current(), kCollect, variables);
}

// -- The player.

// While it lives, weft says nothing: what a program leaves behind (errors that
// nobody retrieves, pending tasks) is no part of its trace.
class Silence {
 public:
  Silence() : before_(SetLogSink([](LogSeverity, std::string_view) {})) {}
  ~Silence() { SetLogSink(before_); }
  Silence(const Silence&) = delete;

 private:
  LogSink before_;
};

class Player {
 public:
  explicit Player(const Program& program) : program_(program) {}

  std::string Run() {
    Silence silence;
    LoopOptions options;
    options.environment.clock = &clock_;
    std::unique_ptr<EventLoop> loop = EventLoop::Create(options).value();
    loop_ = loop.get();
    loop->SetExceptionHandler([](EventLoop&, const ExceptionContext&) {});
    loop->CallSoon([this] { Start(); });
    try {
      loop->RunForever();
    } catch (const RuntimeError&) {
      // Nothing is ready and no timer is pending: the end of every program.
    }
    LogIdle();
    is_over_ = true;
    variables_.clear();
    loop->Close();
    return std::move(trace_);
  }

 private:
  using Name = const std::string&;

  // -- Helpers, by their names in asyncio_oracle.py.

  template <class... Args>
  void Log(std::string_view who, const Args&... what) {
    if (is_over_) return;  // A frame that is destroyed at the end.
    const int64_t now = absl::ToInt64Seconds(clock_.Now() - TimePoint());
    absl::StrAppend(&trace_, now, " ", who, " ", what...);
    trace_ += '\n';
  }

  void LogIdle() {
    std::vector<std::string> names;
    for (const TaskRef& task : loop_->AllTasks()) names.push_back(task.name());
    std::sort(names.begin(), names.end());
    Log("-", "idle pending ", names.empty() ? "-" : absl::StrJoin(names, ","));
  }

  std::string NameOf(Name wanted) {
    const int count = names_[wanted]++;
    return count == 0 ? wanted : absl::StrCat(wanted, "#", count);
  }

  const Block& Proc(Name name) const { return program_.procs.at(name); }

  Task<int> MakeTask(Name proc, Name wanted) {
    const std::string name = NameOf(wanted);
    return CreateTask(Body(Proc(proc), name), name);
  }

  Coro<int> Body(const Block& block, std::string me) {
    Log(me, "begin");
    Outcome<void> outcome = co_await NoThrow(RunBlock(block, me, nullptr));
    if (outcome.has_value()) {
      Log(me, "end");
      co_return 0;
    }
    if (outcome.cancelled()) {
      Log(me, "end cancelled");
    } else if (Holds<ReturnSignal>(outcome.exception())) {
      const int value = ReturnedValue(outcome.exception());
      Log(me, "end return ", value);
      co_return value;
    } else {
      Log(me, "end raised ", Describe(outcome.exception()));
    }
    std::rethrow_exception(outcome.exception());
  }

  static int ReturnedValue(const std::exception_ptr& error) {
    try {
      std::rethrow_exception(error);
    } catch (const ReturnSignal& signal) {
      return signal.value();
    }
  }

  void Start() {
    for (const Object& object : program_.objects) variables_[object.name] = Make(object);
    MakeTask("main", "main");
  }

  Variable Make(const Object& object) {
    if (object.kind == "future") return loop_->CreateFuture<int>();
    if (object.kind == "event") return &events_.emplace_back();
    if (object.kind == "lock") return &locks_.emplace_back();
    if (object.kind == "sem") return &semaphores_.emplace_back(object.number);
    if (object.kind == "bsem") return &bounded_semaphores_.emplace_back(object.number);
    if (object.kind == "cond") return &conditions_.emplace_back();
    if (object.kind == "queue") return &queues_.emplace_back(object.number);
    return &barriers_.emplace_back(static_cast<int>(object.number));
  }

  const Variable* Find(Name name) const {
    const auto found = variables_.find(name);
    return found == variables_.end() ? nullptr : &found->second;
  }

  // The object of that kind. Errors: Misuse.
  template <class T>
  T& Get(Name name) const {
    const Variable* variable = Find(name);
    if (variable == nullptr) throw Misuse();
    T* const* object = std::get_if<T*>(variable);
    if (object == nullptr) throw Misuse();
    return **object;
  }

  static bool IsCurrentTask(const Variable& variable) {
    const TaskRef current = CurrentTask();
    return std::visit(
        [&](const auto& value) {
          if constexpr (IsFuture<std::remove_cvref_t<decltype(value)>>::value) {
            return current && value.state() == current.state();
          } else {
            return false;
          }
        },
        variable);
  }

  // Awaits, logs how it ended, lets a cancellation through and swallows a failure.
  template <class A>
  Coro<> LogOutcome(std::string_view me, std::string label, A awaitable) {
    auto outcome = co_await NoThrow(std::move(awaitable));
    if (outcome.has_value()) {
      if constexpr (std::is_void_v<decltype(outcome.value())>) {
        Log(me, label, " -> yes");
      } else {
        Log(me, label, " -> ", Show(outcome.value()));
      }
    } else if (outcome.cancelled()) {
      Log(me, label, " -> cancelled");
      std::rethrow_exception(outcome.exception());
    } else if (Holds<TimeoutError>(outcome.exception())) {
      Log(me, label, " -> timeout");
    } else {
      Log(me, label, " -> raised ", Describe(outcome.exception()));
    }
  }

  // -- Statements.

  Coro<> RunBlock(const Block& block, Name me, TaskGroup* group) {
    for (const Statement& statement : block) {
      if (statement.op >= Op::kLog) {
        RunPlain(statement, me);
      } else if (statement.op >= Op::kWaitEvent) {
        co_await RunSync(statement, me, group);
      } else {
        co_await RunStatement(statement, me, group);
      }
    }
  }

  // Those that wait for nothing: in a task, or (`me` is "-") in a callback.
  void RunPlain(const Statement& s, std::string_view me) {
    Name name = s.words[0];
    const Variable* variable = Find(name);
    switch (s.op) {
      case Op::kLog:
        Log(me, name);
        break;
      case Op::kCancel:
        if (variable != nullptr) LogCancel(me, name, *variable);
        break;
      case Op::kDone:
        if (variable != nullptr) {
          const bool done = WithFuture(*variable, [](const auto& future) { return future.Done(); });
          Log(me, "done ", name, " -> ", YesOrNo(done));
        }
        break;
      case Op::kDrop:
        if (variable != nullptr) Cancel(*variable);
        break;
      case Op::kResolve:
      case Op::kFail:
        Settle(s, me);
        break;
      case Op::kSet:
        Get<Event>(name).Set();
        break;
      case Op::kClear:
        Get<Event>(name).Clear();
        break;
      case Op::kTryPut:
        try {
          Get<Queue<int>>(name).PutNowait(static_cast<int>(s.numbers[0]));
          Log(me, "try_put ", name, " -> ok");
        } catch (const QueueFull&) {
          Log(me, "try_put ", name, " -> full");
        }
        break;
      case Op::kTryGet:
        try {
          const int value = Get<Queue<int>>(name).GetNowait();
          Log(me, "try_get ", name, " -> ", value);
        } catch (const QueueEmpty&) {
          Log(me, "try_get ", name, " -> empty");
        }
        break;
      case Op::kTaskDone:
        try {
          Get<Queue<int>>(name).TaskDone();
        } catch (const ValueError&) {
          Log(me, "task_done ", name, " -> too many");
        }
        break;
      case Op::kRelease:
        try {
          Release(name);
        } catch (const ValueError&) {
          Log(me, "release ", name, " -> too many");
        }
        break;
      default:
        break;
    }
  }

  // What Python's `cancel()` returns; None of a handle.
  static std::string_view Cancel(const Variable& variable) {
    if (const Handle* handle = std::get_if<Handle>(&variable)) {
      Handle(*handle).Cancel();
      return "None";
    }
    return YesOrNo(WithFuture(variable, [](auto future) { return future.Cancel(); }));
  }
  void LogCancel(std::string_view me, Name name, Variable variable) {
    const std::string_view answer = Cancel(variable);
    Log(me, "cancel ", name, " -> ", answer);
  }

  void Settle(const Statement& s, std::string_view me) {
    const bool resolves = s.op == Op::kResolve;
    const Variable* variable = Find(s.words[0]);
    if (variable == nullptr) throw Misuse();
    const bool done = WithFuture(*variable, [](const auto& future) { return future.Done(); });
    if (done) {
      Log(me, resolves ? "resolve " : "fail ", s.words[0], " -> already done");
      return;
    }
    const Future<int>* future = std::get_if<Future<int>>(variable);
    if (future == nullptr) throw Misuse();
    if (resolves) {
      Future<int>(*future).SetResult(static_cast<int>(s.numbers[0]));
    } else {
      Future<int>(*future).SetException(Failure(s.words[1]));
    }
  }

  void Release(Name name) {
    const Variable* variable = Find(name);
    if (variable == nullptr) throw Misuse();
    if (Semaphore* const* semaphore = std::get_if<Semaphore*>(variable)) {
      (*semaphore)->Release();
    } else if (Lock* const* lock = std::get_if<Lock*>(variable)) {
      (*lock)->Release();
    } else {
      Get<Condition>(name).Release();
    }
  }

  Coro<> RunStatement(const Statement& s, Name me, TaskGroup* group) {
    switch (s.op) {
      case Op::kYield:
        co_await Sleep(absl::ZeroDuration());
        break;
      case Op::kSleep:
        co_await Sleep(absl::Seconds(s.numbers[0]));
        break;
      case Op::kRepeat:
        for (int64_t i = 0; i < s.numbers[0]; ++i) co_await RunBlock(s.blocks[0], me, group);
        break;
      case Op::kRaise:
        throw Failure(s.words[0]);
      case Op::kReturn:
        throw ReturnSignal(static_cast<int>(s.numbers[0]));
      case Op::kSpawn:
        variables_[s.words[0]] = MakeTask(s.words[1], s.words[0]);
        break;
      case Op::kCall:
        co_await LogOutcome(me, "call " + s.words[0], Body(Proc(s.words[0]), NameOf(s.words[0])));
        break;
      case Op::kAwait:
        co_await AwaitVariable(s, me);
        break;
      case Op::kCancelSelf:
        Log(me, "cancel_self -> ", YesOrNo(CurrentTask().Cancel()));
        break;
      case Op::kUncancel:
        Log(me, "uncancel -> ", CurrentTask().Uncancel());
        break;
      case Op::kCancelling:
        Log(me, "cancelling -> ", CurrentTask().Cancelling());
        break;
      case Op::kSoon:
        variables_[s.words[0]] =
            Handle(loop_->CallSoon([this, plain = &s.blocks[0][0]] { RunPlain(*plain, "-"); }));
        break;
      case Op::kLater:
        variables_[s.words[0]] =
            Handle(loop_->CallLater(absl::Seconds(s.numbers[0]),
                                    [this, plain = &s.blocks[0][0]] { RunPlain(*plain, "-"); }));
        break;
      case Op::kOnDone:
        if (const Variable* variable = Find(s.words[0])) AddCallback(*variable, &s.words[1]);
        break;
      case Op::kGather:
        co_await GatherProcs(s, me);
        break;
      case Op::kGatherThese:
        GatherThese(s);
        break;
      case Op::kWait:
        co_await WaitForThese(s, me);
        break;
      case Op::kWaitFor:
        co_await LogOutcome(
            me, "wait_for " + s.words[0],
            WaitFor(Body(Proc(s.words[0]), NameOf(s.words[0])), absl::Seconds(s.numbers[0])));
        break;
      case Op::kWaitForThis:
        co_await WaitForThis(s, me);
        break;
      case Op::kShield:
        co_await ShieldVariable(s, me);
        break;
      case Op::kTimeout:
        co_await RunTimeout(s, me, group);
        break;
      case Op::kGroup:
        co_await RunGroup(s, me);
        break;
      case Op::kStart:
        if (group != nullptr) StartInGroup(s, me, *group);
        break;
      default:
        co_await RunTry(s, me, group);
        break;
    }
  }

  Coro<> AwaitVariable(const Statement& s, Name me) {
    Name name = s.words[0];
    const Variable* variable = Find(name);
    const std::string label = "await " + name;
    if (variable == nullptr) co_return;
    if (IsCurrentTask(*variable)) {
      Log(me, label, " -> itself");
    } else {
      Coro<> logged = VisitFuture(*variable, me, label, [](auto future) { return future; });
      co_await std::move(logged);
    }
  }

  Coro<> ShieldVariable(const Statement& s, Name me) {
    Name name = s.words[0];
    const Variable* variable = Find(name);
    const std::string label = "shield " + name;
    if (variable == nullptr) co_return;
    if (IsCurrentTask(*variable)) {
      Log(me, label, " -> itself");
    } else {
      Coro<> logged = VisitFuture(*variable, me, label, [](auto future) { return Shield(future); });
      co_await std::move(logged);
    }
  }

  Coro<> WaitForThis(const Statement& s, Name me) {
    const Variable* variable = Find(s.words[0]);
    if (variable == nullptr || IsCurrentTask(*variable)) co_return;
    const absl::Duration limit = absl::Seconds(s.numbers[0]);
    Coro<> logged = VisitFuture(*variable, me, "wait_for_this " + s.words[0],
                                [limit](auto future) { return WaitFor(std::move(future), limit); });
    co_await std::move(logged);
  }

  // LogOutcome() of what `wrap` makes of the future in `variable`.
  template <class Wrap>
  Coro<> VisitFuture(const Variable& variable, std::string_view me, std::string label, Wrap wrap) {
    return std::visit(
        [&](const auto& value) {
          if constexpr (IsFuture<std::remove_cvref_t<decltype(value)>>::value) {
            return LogOutcome(me, std::move(label), wrap(value));
          } else {
            return LogOutcome(me, std::move(label), ThrowMisuse());
          }
        },
        variable);
  }
  static Coro<int> ThrowMisuse() {
    throw Misuse();
    co_return 0;
  }

  void AddCallback(const Variable& variable, const std::string* label) {
    WithFuture(variable, [&](auto future) {
      return future.AddDoneCallback([this, label](const auto&) { Log("-", *label); });
    });
  }

  Coro<> GatherProcs(const Statement& s, Name me) {
    bool collects = false;
    std::vector<Task<int>> tasks;
    for (Name word : s.words) {
      if (word == "collect") {
        collects = true;
      } else {
        tasks.push_back(MakeTask(word, word));
      }
    }
    if (collects) {
      co_await LogOutcome(me, "gather", GatherOutcomes(std::move(tasks)));
    } else {
      co_await LogOutcome(me, "gather", Gather(std::move(tasks)));
    }
  }

  void GatherThese(const Statement& s) {
    bool collects = false;
    std::vector<Variable> things;
    for (size_t i = 1; i < s.words.size(); ++i) {
      if (s.words[i] == "collect") {
        collects = true;
      } else if (const Variable* variable = Find(s.words[i])) {
        if (IsCurrentTask(*variable)) return;
        things.push_back(*variable);
      }
    }
    if (things.empty()) return;
    std::vector<Future<int>> futures;
    for (const Variable& thing : things) {
      if (const Future<int>* future = std::get_if<Future<int>>(&thing)) futures.push_back(*future);
    }
    Variable& result = variables_[s.words[0]];
    if (futures.size() < things.size()) {
      result = collects ? GatherUnlike<true>(things) : GatherUnlike<false>(things);
    } else if (collects) {
      result = GatherOutcomes(std::move(futures));
    } else {
      result = Gather(std::move(futures));
    }
  }

  Coro<> WaitForThese(const Statement& s, Name me) {
    std::map<std::string, FutureRef> things;
    for (size_t i = 1; i < s.words.size(); ++i) {
      const Variable* variable = Find(s.words[i]);
      if (variable == nullptr) continue;
      if (IsCurrentTask(*variable)) co_return;
      things[s.words[i]] = WithFuture(*variable, [](const auto& future) { return future.Ref(); });
    }
    if (things.empty()) co_return;
    const ReturnWhen mode = s.words[0] == "all"     ? kAllCompleted
                            : s.words[0] == "first" ? kFirstCompleted
                                                    : kFirstException;
    const absl::Duration limit =
        s.numbers.empty() ? absl::InfiniteDuration() : absl::Seconds(s.numbers[0]);
    std::vector<FutureRef> futures;
    for (const auto& [name, future] : things) futures.push_back(future);
    Outcome<WaitResult<>> outcome = co_await NoThrow(Wait(std::move(futures), mode, limit));
    if (outcome.cancelled()) Log(me, "wait -> cancelled");
    const WaitResult<>& result = outcome.value();
    const auto names_in = [&](const std::vector<FutureRef>& found) {
      std::vector<std::string> names;
      for (const auto& [name, future] : things) {
        if (std::find(found.begin(), found.end(), future) != found.end()) names.push_back(name);
      }
      return names.empty() ? "-" : absl::StrJoin(names, ",");
    };
    Log(me, "wait -> done ", names_in(result.done), " pending ", names_in(result.pending));
  }

  Coro<> RunTimeout(const Statement& s, Name me, TaskGroup* group) {
    bool expired = false;
    auto body = [&](Timeout& limit) -> Coro<> {
      co_await RunBlock(s.blocks[0], me, group);
      expired = limit.Expired();
    };
    Outcome<void> outcome = co_await NoThrow(WithTimeout(absl::Seconds(s.numbers[0]), body));
    if (outcome.has_value()) {
      Log(me, "timeout -> in time ", YesOrNo(expired));
    } else if (Holds<TimeoutError>(outcome.exception())) {
      Log(me, "timeout -> expired");
    } else {
      std::rethrow_exception(outcome.exception());
    }
  }

  Coro<> RunGroup(const Statement& s, Name me) {
    auto body = [&](TaskGroup& inner) -> Coro<> { co_await RunBlock(s.blocks[0], me, &inner); };
    Outcome<void> outcome = co_await NoThrow(WithTaskGroup(body));
    if (outcome.has_value()) {
      Log(me, "group -> ok");
    } else if (Holds<ExceptionGroup>(outcome.exception())) {
      Log(me, "group -> raised ", Describe(outcome.exception()));
    } else {
      std::rethrow_exception(outcome.exception());
    }
  }

  void StartInGroup(const Statement& s, Name me, TaskGroup& group) {
    const std::string name = NameOf(s.words[0]);
    try {
      variables_[s.words[0]] = group.CreateTask(Body(Proc(s.words[1]), name), name);
    } catch (const RuntimeError&) {
      Log(me, "start ", s.words[0], " -> refused");
    }
  }

  Coro<> RunTry(const Statement& s, Name me, TaskGroup* group) {
    Outcome<void> outcome = co_await NoThrow(RunBlock(s.blocks[0], me, group));
    if (s.words[0] == "finally") {
      co_await RunBlock(s.blocks[1], me, group);
    } else if (outcome.cancelled()) {
      Log(me, "caught cancelled");
      co_await RunBlock(s.blocks[1], me, group);
      if (s.words[0] != "rethrow") co_return;
    } else if (outcome.has_exception() && Holds<Failure>(outcome.exception())) {
      Log(me, "caught ", Describe(outcome.exception()));
      co_await RunBlock(s.blocks[1], me, group);
      co_return;
    }
    outcome.value();
  }

  // Those of sync/.
  Coro<> RunSync(const Statement& s, Name me, TaskGroup* group) {
    Name name = s.words[0];
    switch (s.op) {
      case Op::kWaitEvent:
        co_await LogOutcome(me, "wait_event " + name, Get<Event>(name).Wait());
        break;
      case Op::kLock:
      case Op::kSem:
        co_await Locked(s, me, group);
        break;
      case Op::kCondWait:
        co_await CondWait(Get<Condition>(name), name, me);
        break;
      case Op::kNotify:
        co_await Notify(Get<Condition>(name), name, s.numbers[0], me);
        break;
      case Op::kPut: {
        Queue<int>& queue = Get<Queue<int>>(name);
        co_await queue.Put(static_cast<int>(s.numbers[0]));
        Log(me, "put ", name, " ", s.numbers[0], " size ", queue.Size());
        break;
      }
      case Op::kGet: {
        Queue<int>& queue = Get<Queue<int>>(name);
        const int value = co_await queue.Get();
        Log(me, "get ", name, " ", value, " size ", queue.Size());
        break;
      }
      case Op::kJoin:
        co_await Get<Queue<int>>(name).Join();
        Log(me, "joined ", name);
        break;
      case Op::kAbort:
        Get<Barrier>(name).Abort();
        Log(me, "abort ", name);
        break;
      case Op::kReset:
        Get<Barrier>(name).Reset();
        Log(me, "reset ", name);
        break;
      default:
        co_await LogOutcome(me, "arrive " + name, Get<Barrier>(name).Wait());
        break;
    }
  }

  // `async with lock`, of whatever kind. By hand and not by a guard: releasing may
  // throw, if somebody else has released it.
  Coro<> Locked(const Statement& s, Name me, TaskGroup* group) {
    Name name = s.words[0];
    const Variable* variable = Find(name);
    if (variable == nullptr) throw Misuse();
    const Variable lock = *variable;
    if (Semaphore* const* semaphore = std::get_if<Semaphore*>(&lock)) {
      Semaphore::Guard guard = co_await (*semaphore)->Acquire();
      guard.Detach();
    } else if (Lock* const* plain = std::get_if<Lock*>(&lock)) {
      Lock::Guard guard = co_await (*plain)->Acquire();
      guard.Detach();
    } else {
      Lock::Guard guard = co_await Get<Condition>(name).Acquire();
      guard.Detach();
    }
    Log(me, "enter ", name);
    Outcome<void> outcome = co_await NoThrow(RunBlock(s.blocks[0], me, group));
    std::visit(
        [](const auto& object) {
          if constexpr (requires { object->Release(); }) object->Release();
        },
        lock);
    outcome.value();
    Log(me, "leave ", name);
  }

  Coro<> CondWait(Condition& condition, Name name, Name me) {
    Lock::Guard guard = co_await condition.Acquire();
    guard.Detach();
    Log(me, "enter ", name);
    Outcome<void> outcome = co_await NoThrow(condition.Wait());
    if (outcome.has_value()) Log(me, "woken ", name);
    condition.Release();
    outcome.value();
  }

  Coro<> Notify(Condition& condition, Name name, int64_t count, Name me) {
    Lock::Guard guard = co_await condition.Acquire();
    condition.Notify(count);
    Log(me, "notify ", name);
  }

  const Program& program_;
  VirtualClock clock_;
  EventLoop* loop_ = nullptr;
  bool is_over_ = false;
  std::string trace_;
  std::map<std::string, int> names_;
  std::map<std::string, Variable> variables_;
  // Deques, as these stay where they are.
  std::deque<Event> events_;
  std::deque<Lock> locks_;
  std::deque<Semaphore> semaphores_;
  std::deque<BoundedSemaphore> bounded_semaphores_;
  std::deque<Condition> conditions_;
  std::deque<Queue<int>> queues_;
  std::deque<Barrier> barriers_;
};

}  // namespace

std::string Play(const Program& program) { return Player(program).Run(); }

}  // namespace weft::oracle

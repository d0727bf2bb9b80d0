// Copyright 2026 The weft Authors.
// SPDX-License-Identifier: Apache-2.0

#ifndef WEFT_LOOP_RUN_H_
#define WEFT_LOOP_RUN_H_

#include <memory>
#include <optional>
#include <type_traits>
#include <utility>

#include "weft/core/context.h"
#include "weft/core/coro.h"
#include "weft/core/errors.h"
#include "weft/core/task.h"
#include "weft/loop/environment.h"
#include "weft/loop/event_loop.h"
#include "weft/loop/signal_watcher.h"

namespace weft {

template <class T>
T Run(Coro<T> main, RunOptions options = RunOptions());

// Runner
//
// Several runs on one loop, and its orderly end: what `Run()` is made of, for
// test frameworks and programs that need the loop between runs. Context variables
// that the main task of one run has set are so for the next.
//
//   Runner runner;
//   int a = runner.Run(First());
//   int b = runner.Run(Second());   // The same loop.
//   runner.Close();
//
// The loop is made by the first call that needs it. Close() cancels the tasks
// that are left and waits for their cleanup, ends async generators and the
// default executor, and closes the loop; the destructor does the same.
//
// During a run SIGINT cancels its main task (on the main thread, and if nobody else
// handles the signal), and Run() throws KeyboardInterrupt when that has cleaned up. A
// second SIGINT does not wait for that: the run ends with KeyboardInterrupt after the
// callbacks of this round. One that comes in the last step of main replaces its value;
// one during Close() ends the cleanup that it waits for, and Close() throws
// KeyboardInterrupt. A loop that is stuck in a callback cannot do any of it; then the
// third one ends the process, as SIGINT does without all this.
//
// Threads: belongs to the thread that runs it.
// Python: asyncio.Runner.
class Runner {
 public:
  explicit Runner(RunOptions options = RunOptions()) : options_(std::move(options)) {}
  Runner(const Runner&) = delete;
  Runner& operator=(const Runner&) = delete;
  ~Runner();

  // Runs `main` to its end, and returns its value or throws what it threw.
  // Errors: RuntimeError "Runner is closed"; "Runner.Run() cannot be called from a
  // running event loop"; ValueError if `main` is no coroutine any more, and if
  // the options name no poller that works.
  template <class T>
  T Run(Coro<T> main) {
    CheckMayRun("Runner.Run()");
    if (!main) throw ValueError("main: a coroutine was expected, got one that was used before");
    EventLoop* loop;
    try {
      loop = &GetLoop();
    } catch (...) {
      main.Close();  // Nobody has forgotten to await it.
      throw;
    }
    Task<T> task = loop->CreateTask(std::move(main));
    ContextScope scope(&context_, &task.task_state()->context());
    return RunTask(task);
  }

  // The loop, made if need be. Errors: RuntimeError "Runner is closed";
  // ValueError if there is no such poller.
  EventLoop& GetLoop();

  // Ends the loop. Does nothing the second time.
  // Errors: RuntimeError inside of a run; KeyboardInterrupt if SIGINT came meanwhile,
  // and the loop is closed all the same.
  void Close();

 private:
  template <class T>
  friend T Run(Coro<T> main, RunOptions options);

  // Handles SIGINT while it lives: cancels `main`; if there is none, or it was asked
  // before, ends the run; if main has ended, says so.
  class InterruptScope : public internal::SignalListener {
   public:
    InterruptScope(EventLoop& loop, TaskRef main);
    ~InterruptScope();

    // After the run: whether it is to end with KeyboardInterrupt, instead of with its
    // value, its CancelledError, or another error. No SIGINT is heard of after that.
    bool EndsWell();
    bool EndsCancelled();
    bool EndsBadly();

   private:
    void OnSignal(int signal) override;
    void Stop();

    EventLoop& loop_;
    TaskRef main_;
    int count_ = 0;
    bool came_late_ = false;  // One, when main or the run was over.
    bool is_handling_ = false;
  };

  // The main task has the runner's context while this lives.
  class ContextScope {
   public:
    ContextScope(internal::ContextRef* runner, internal::ContextRef* task)
        : runner_(runner), task_(task) {
      *task_ = *runner_;
    }
    ~ContextScope() { *runner_ = *task_; }

   private:
    internal::ContextRef* runner_;
    internal::ContextRef* task_;
  };

  void CheckMayRun(const char* caller) const;

  template <class T>
  T RunTask(Task<T> task) {
    InterruptScope interrupt(*loop_, task);
    try {
      if constexpr (std::is_void_v<T>) {
        loop_->RunUntilComplete(Future<T>(task));
        if (interrupt.EndsWell()) throw KeyboardInterrupt();
      } else {
        T result = loop_->RunUntilComplete(Future<T>(task));
        if (interrupt.EndsWell()) throw KeyboardInterrupt();
        return result;
      }
    } catch (const CancelledError&) {
      if (interrupt.EndsCancelled()) throw KeyboardInterrupt();
      throw;
    } catch (...) {
      if (interrupt.EndsBadly()) throw KeyboardInterrupt();
      throw;
    }
  }

  // Where an error is on its way already, which only KeyboardInterrupt replaces.
  void CloseAfterError();
  void CancelAllTasks();

  RunOptions options_;
  std::unique_ptr<EventLoop> loop_;
  internal::ContextRef context_;  // As the thread's when the loop was made.
  bool closed_ = false;
};

// Runs a program: makes a loop, runs `main` to its end, cancels the tasks that
// are left and waits for their cleanup, ends async generators and the default
// executor, closes the loop, and returns what `main` returned or throws what it
// threw.
//
//   Coro<int> Main() { ... co_return 0; }
//   int main() { return weft::Run(Main()); }
//
// What a task throws while it is cancelled goes to the exception handler.
//
// Errors: RuntimeError "Run() cannot be called from a running event loop" (the
// coroutine is destroyed); ValueError as for Runner; KeyboardInterrupt if
// SIGINT ended it.
// Python: asyncio.run().
template <class T>
T Run(Coro<T> main, RunOptions options) {
  Runner runner(std::move(options));
  runner.CheckMayRun("Run()");
  const auto run = [&] {
    try {
      return runner.Run(std::move(main));
    } catch (...) {
      runner.CloseAfterError();
      throw;
    }
  };
  if constexpr (std::is_void_v<T>) {
    run();
    runner.Close();
  } else {
    T result = run();
    runner.Close();
    return result;
  }
}

}  // namespace weft

#endif  // WEFT_LOOP_RUN_H_

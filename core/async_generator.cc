// Copyright 2026 The weft Authors.
// SPDX-License-Identifier: Apache-2.0

#include "weft/core/async_generator.h"

#include <exception>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "weft/core/errors.h"
#include "weft/core/exception_context.h"
#include "weft/core/gather.h"
#include "weft/core/no_throw.h"
#include "weft/core/task.h"

namespace weft {
namespace internal {

GeneratorPromise::~GeneratorPromise() {
  if (owner != nullptr) owner->promise_ = nullptr;
}

bool GeneratorAwaiter::TakeStep(std::exception_ptr* error, bool* is_cancellation) {
  promise_->is_running = false;
  promise_->awaiter = nullptr;
  child = nullptr;
  const bool is_over = promise_->is_over;
  *error = promise_->error;
  *is_cancellation = promise_->is_cancellation;
  if (is_over || promise_->owner == nullptr) promise_->handle().destroy();
  return !is_over;
}

void ThrowGeneratorRunning(const char* operation) {
  throw RuntimeError(absl::StrCat(operation, "asynchronous generator is already running"));
}

bool GeneratorClose::await_ready() const {
  if (promise_ == nullptr) return true;
  if (promise_->is_running) ThrowGeneratorRunning("aclose(): ");
  if (promise_->is_started) return false;
  promise_->handle().destroy();  // Nothing of it has run, so there is nothing to clean up.
  return true;
}

Outcome<void> GeneratorClose::await_outcome() {
  Outcome<void> outcome;
  outcome.Emplace();
  if (parent == nullptr) return outcome;  // There was nothing to do.
  std::exception_ptr error;
  bool is_cancellation = false;
  if (TakeStep(&error, &is_cancellation)) {
    outcome.SetError(
        std::make_exception_ptr(RuntimeError("async generator ignored GeneratorExit")));
  } else if (is_cancellation) {
    outcome.SetCancelled(std::move(error));
  } else if (error != nullptr) {
    try {
      std::rethrow_exception(error);
    } catch (const GeneratorExit&) {
      // As it should be.
    } catch (...) {
      outcome.SetError(error);
    }
  }
  return outcome;
}

namespace {

// Closes the first that nobody closes yet. Which one is found out only here, as
// one may go because of another.
Coro<> CloseFirstGenerator(SchedulerCore* core) {
  GeneratorLink* link = core->generators.PopFront();
  if (link == nullptr) co_return;
  auto* promise = static_cast<GeneratorPromise*>(link);
  if (promise->is_running) co_return;
  GeneratorClose close(promise);
  Outcome<void> outcome = co_await NoThrow(close);
  if (outcome.has_value()) co_return;
  if (outcome.cancelled()) std::rethrow_exception(outcome.exception());
  if (IsKeyboardInterrupt(outcome.exception()) && core->owner->Interrupt()) co_return;
  ExceptionContext context("an error occurred during closing of asynchronous generator");
  context.exception = outcome.exception();
  core->owner->HandleException(std::move(context));
}

}  // namespace
}  // namespace internal

Coro<> CloseAsyncGenerators(Scheduler& scheduler) {
  internal::SchedulerCore* core = scheduler.core();
  std::vector<Coro<>> closers;
  for (size_t count = core->generators.CountSlowly(); count > 0; --count) {
    closers.push_back(internal::CloseFirstGenerator(core));
  }
  if (closers.empty()) co_return;
  co_await Gather(std::move(closers));
}

}  // namespace weft

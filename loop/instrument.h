// Copyright 2026 The weft Authors.
// SPDX-License-Identifier: Apache-2.0

#ifndef WEFT_LOOP_INSTRUMENT_H_
#define WEFT_LOOP_INSTRUMENT_H_

#include <cstddef>
#include <cstdint>
#include <string>

#include "weft/core/source_location.h"
#include "weft/core/task.h"

namespace weft {

namespace internal {
class Observation;
}  // namespace internal

// Activity
//
// One thing that a round runs: a step of a task, a callback, or something of the
// loop's own, as a timer that wakes a task.
struct Activity {
  enum class Kind : uint8_t { kStep, kCallback, kInternal };

  Kind kind = Kind::kInternal;
  TaskRef task;  // Of a step; else none.
  // Of a step: the await at which the task goes on, at first the definition of its
  // coroutine. Of a callback: where it was scheduled. Else line 0.
  SourceLocation location;

  // "<Task ...>", as the task is now; "<Handle created at a.cc:12>".
  std::string ToString() const;
};

// Instrument
//
// Is told what a loop does, as it does it: for timelines, traces and profiles.
// Derive from it what you want to hear of, and add it to a loop:
//
//   class Tracer final : public Instrument {
//     void TaskWaits(const TaskRef& task) override {
//       std::cout << task.name() << " waits for " << task.WaitsFor() << "\n";
//     }
//   };
//
//   Tracer tracer;
//   GetRunningLoop().AddInstrument(&tracer);
//
// It may ask the loop and its tasks what it likes, and may call them as any
// callback may. One that throws is reported and removed.
//
// A loop without instruments pays nothing; one with them a few virtual calls for
// each thing it runs. The round that is running when the first is added is not
// reported.
//
// An instrument that is destroyed leaves its loop; it is the caller's.
//
// Threads: belongs to the loop's thread.
// Python: none; trio.abc.Instrument.
class Instrument {
 public:
  Instrument() = default;
  Instrument(const Instrument&) = delete;
  Instrument& operator=(const Instrument&) = delete;
  virtual ~Instrument();

  // A task takes its first step. One that is cancelled before does not start.
  virtual void TaskStarts(const TaskRef& task);
  // A step is over, and the task is not: task.WaitsFor() says what for.
  virtual void TaskWaits(const TaskRef& task);
  // It goes on.
  virtual void TaskWakes(const TaskRef& task);
  // It is done.
  virtual void TaskEnds(const TaskRef& task);

  // Around everything that is run, the steps of tasks as well.
  virtual void RunBegins(const Activity& activity);
  virtual void RunEnds(const Activity& activity);

  // Around a round's callbacks; the loop has looked at the kernel, or decided not
  // to, before. `callbacks`: how many have run.
  virtual void RoundBegins();
  virtual void RoundEnds(size_t callbacks);

 private:
  friend class internal::Observation;

  internal::Observation* observation_ = nullptr;  // Of the loop it was added to.
};

}  // namespace weft

#endif  // WEFT_LOOP_INSTRUMENT_H_

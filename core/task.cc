// Copyright 2026 The weft Authors.
// SPDX-License-Identifier: Apache-2.0

#include "weft/core/task.h"

namespace weft {

TaskRef CurrentTask() {
  Scheduler* scheduler = Scheduler::Current();
  return scheduler == nullptr ? TaskRef() : TaskRef(scheduler->core()->current_task);
}

std::vector<TaskRef> AllTasks() { return internal::TasksOf(*Scheduler::CurrentOrThrow().core()); }

void DumpTasks(std::ostream& out) {
  internal::DumpTasksOf(*Scheduler::CurrentOrThrow().core(), out);
}

namespace internal {

void DumpTasksOf(SchedulerCore& core, std::ostream& out) {
  const size_t count = core.tasks.CountSlowly();
  out << count << (count == 1 ? " task" : " tasks") << "\n";
  for (TaskLink* link = core.tasks.front(); link != nullptr; link = core.tasks.Next(link)) {
    DumpTask(*TaskState::FromLink(link), out);
  }
}

std::vector<TaskRef> TasksOf(SchedulerCore& core) {
  std::vector<TaskRef> tasks;
  for (TaskLink* link = core.tasks.front(); link != nullptr; link = core.tasks.Next(link)) {
    tasks.emplace_back(TaskState::FromLink(link));
  }
  return tasks;
}

}  // namespace internal
}  // namespace weft

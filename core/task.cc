// Copyright 2026 The weft Authors.
// SPDX-License-Identifier: Apache-2.0

#include "weft/core/task.h"

namespace weft {

TaskRef CurrentTask() {
  Scheduler* scheduler = Scheduler::Current();
  return scheduler == nullptr ? TaskRef() : TaskRef(scheduler->core()->current_task);
}

std::vector<TaskRef> AllTasks() {
  std::vector<TaskRef> tasks;
  List<internal::TaskLink>& all = Scheduler::CurrentOrThrow().core()->tasks;
  for (internal::TaskLink* link = all.front(); link != nullptr; link = all.Next(link)) {
    tasks.emplace_back(internal::TaskState::FromLink(link));
  }
  return tasks;
}

}  // namespace weft

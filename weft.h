// Copyright 2026 The weft Authors.
// SPDX-License-Identifier: Apache-2.0

#ifndef WEFT_WEFT_H_
#define WEFT_WEFT_H_

// All that a program needs. Each part has a header, and a target, of its own.

#include "weft/core/as_completed.h"
#include "weft/core/async_generator.h"
#include "weft/core/clock.h"
#include "weft/core/closure.h"
#include "weft/core/context_var.h"
#include "weft/core/coro.h"
#include "weft/core/errors.h"
#include "weft/core/exception_context.h"
#include "weft/core/future.h"
#include "weft/core/future_ref.h"
#include "weft/core/gather.h"
#include "weft/core/log.h"
#include "weft/core/no_throw.h"
#include "weft/core/outcome.h"
#include "weft/core/shield.h"
#include "weft/core/sleep.h"
#include "weft/core/source_location.h"
#include "weft/core/task.h"
#include "weft/core/task_group.h"
#include "weft/core/time_point.h"
#include "weft/core/timeout.h"
#include "weft/core/wait.h"
#include "weft/core/wait_for.h"
#include "weft/executor/executor.h"
#include "weft/executor/thread_pool.h"
#include "weft/loop/environment.h"
#include "weft/loop/event_loop.h"
#include "weft/loop/loop_ref.h"
#include "weft/loop/run.h"
#include "weft/loop/thread_future.h"
#include "weft/loop/to_thread.h"
#include "weft/net/connect.h"
#include "weft/net/server.h"
#include "weft/net/socket.h"
#include "weft/net/socket_address.h"
#include "weft/net/stream.h"
#include "weft/poller/poller_registry.h"
#include "weft/sync/barrier.h"
#include "weft/sync/channel.h"
#include "weft/sync/condition.h"
#include "weft/sync/event.h"
#include "weft/sync/lock.h"
#include "weft/sync/queue.h"
#include "weft/sync/semaphore.h"

#endif  // WEFT_WEFT_H_

// Copyright 2026 The weft Authors.
// SPDX-License-Identifier: Apache-2.0

#include "weft/net/happy_eyeballs.h"

#include <exception>
#include <optional>
#include <utility>

#include "weft/core/no_throw.h"
#include "weft/core/task.h"
#include "weft/core/timeout.h"
#include "weft/loop/event_loop.h"
#include "weft/sync/event.h"

namespace weft::internal {
namespace {

struct Race {
  std::vector<Task<void>> attempts;
  size_t running = 0;
  bool latest_ended = false;  // The attempt that began last.
  std::optional<Socket> winner;
  Event changed;
};

Coro<void> RunAttempt(Race* race, Coro<absl::StatusOr<Socket>> attempt, absl::Status* error) {
  absl::StatusOr<Socket> socket = co_await std::move(attempt);
  if (!socket.ok()) {
    *error = socket.status();
  } else if (!race->winner.has_value()) {
    race->winner = *std::move(socket);
  }
  // Else it came in second, in the same round, and is closed here.
}

void StartAttempt(Race* race, Coro<absl::StatusOr<Socket>> attempt, absl::Status* error) {
  const size_t index = race->attempts.size();
  race->attempts.push_back(CreateTask(RunAttempt(race, std::move(attempt), error)));
  ++race->running;
  race->latest_ended = false;
  // When it is over, its locals are gone: also that of an attempt that was cancelled
  // before it began.
  race->attempts.back().AddDoneCallback([race, index](const Future<void>&) {
    --race->running;
    if (index + 1 == race->attempts.size()) race->latest_ended = true;
    race->changed.Set();
  });
}

// Until somebody has won, or all have lost.
Coro<void> RunRace(Race* race, size_t count, absl::Duration delay, const ConnectAttempt* attempt,
                   std::vector<absl::Status>* errors) {
  for (size_t next = 0; next < count && !race->winner.has_value(); ++next) {
    StartAttempt(race, (*attempt)(next), &errors->at(next));
    // The last one has all the time of the world.
    const TimePoint until =
        next + 1 == count ? TimePoint::InfiniteFuture() : GetRunningLoop().Time() + delay;
    while (!race->winner.has_value() && !race->latest_ended) {
      race->changed.Clear();
      Outcome<void> waited = co_await NoThrow(WithTimeoutAt(until, race->changed.Wait()));
      if (waited.cancelled()) waited.value();
      if (!waited.has_value()) break;  // It is the next one's turn.
    }
  }
  while (!race->winner.has_value() && race->running > 0) {
    race->changed.Clear();
    co_await race->changed.Wait();
  }
}

}  // namespace

Addresses InterleaveFamilies(Addresses addresses, int first_count) {
  if (first_count <= 0 || addresses.empty()) return addresses;
  Addresses first, other;
  const SocketAddress::Family first_family = addresses.front().family();
  for (SocketAddress& address : addresses) {
    (address.family() == first_family ? first : other).push_back(std::move(address));
  }
  Addresses mixed;
  size_t next_first = 0, next_other = 0;
  size_t turns = static_cast<size_t>(first_count);  // Of the first family, before the other's.
  while (next_first < first.size() || next_other < other.size()) {
    for (; turns > 0 && next_first < first.size(); --turns) {
      mixed.push_back(std::move(first[next_first++]));
    }
    if (next_other < other.size()) mixed.push_back(std::move(other[next_other++]));
    turns = 1;
  }
  return mixed;
}

Coro<absl::StatusOr<Socket>> RaceToConnect(size_t count, absl::Duration delay,
                                           ConnectAttempt attempt,
                                           std::vector<absl::Status>* errors) {
  Race race;
  race.attempts.reserve(count);
  errors->assign(count, absl::OkStatus());
  Outcome<void> outcome = co_await NoThrow(RunRace(&race, count, delay, &attempt, errors));
  // Nobody is left behind, whatever happens meanwhile.
  for (Task<void>& one : race.attempts) one.Cancel();
  while (race.running > 0) {
    race.changed.Clear();
    Outcome<void> waited = co_await NoThrow(race.changed.Wait());
    if (!waited.has_value() && outcome.has_value()) outcome = std::move(waited);
  }
  outcome.value();  // Throws if it was cancelled.

  absl::Status failure = absl::CancelledError("the attempts to connect were cancelled");
  std::exception_ptr thrown;
  for (size_t i = race.attempts.size(); i-- > 0;) {
    const Task<void>& one = race.attempts[i];
    if (!errors->at(i).ok()) failure = errors->at(i);
    if (!one.Cancelled() && one.Exception() != nullptr) thrown = one.Exception();
  }
  if (race.winner.has_value()) co_return *std::move(race.winner);
  if (thrown != nullptr) std::rethrow_exception(thrown);
  co_return failure;
}

}  // namespace weft::internal

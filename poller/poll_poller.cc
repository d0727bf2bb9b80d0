// Copyright 2026 The weft Authors.
// SPDX-License-Identifier: Apache-2.0

// Readiness by poll(2), for any POSIX system. Which operation is next, and what it
// does, is in `readiness_table`; this is how little is left for a backend.
//
// What shapes it:
//   * poll(2) keeps nothing between two calls. So watching a handle is to remember
//     it, forgetting it cannot fail, and nothing is reported in the name of a file
//     that a number no longer stands for.
//   * It reports states and not changes. Where the table wants to hear of changes,
//     each poll asks for what somebody waits for and nothing else: one hears of a
//     state that nobody makes use of again and again. A state is never missed, so
//     what a hang-up or urgent data would say about short reads need not be known.
//   * It counts in milliseconds. The timeout is rounded up: late, never early.
//   * Of its own it has the waker's pipe, which is opened when the first handle is
//     watched, or else at the first sleep. Without one it sleeps in naps.

#include "weft/poller/poll_poller.h"

#include <errno.h>
#include <poll.h>
#include <sys/stat.h>

#include <algorithm>
#include <cstdint>
#include <cstring>
#include <new>
#include <vector>

#include "absl/strings/str_cat.h"
#include "weft/core/clock.h"
#include "weft/poller/pipe_waker_posix.h"
#include "weft/poller/readiness_table.h"
#include "weft/poller/shortage_posix.h"

namespace weft {

namespace {

using internal::Interest;
using internal::PipeWaker;
using internal::Readiness;
using internal::ReadinessSource;
using internal::ReadinessTable;

absl::Status SystemError(const char* call, int error) {
  const std::string message = absl::StrCat("poll poller: ", call, ": ", std::strerror(error));
  return internal::IsShortage(error) ? absl::ResourceExhaustedError(message)
                                     : absl::InternalError(message);
}

class PollPoller final : public Poller, private ReadinessSource {
 public:
  std::string_view name() const override { return "poll"; }
  StartResult Start(Operation* op) override { return table_.Start(op); }
  void Cancel(Operation* op) override { table_.Cancel(op); }
  void CancelAll() override { table_.CancelAll(); }
  StartResult FetchLent(Operation* op, SlabPool* pool, Slab* slab) override {
    return table_.FetchLent(op, pool, slab);
  }
  std::shared_ptr<Waker> MakeWaker() override { return waker_; }

  absl::Status Wait(TimePoint deadline, ReadyQueue* done) override;

 private:
  struct Watched {
    NativeHandle handle;
    uint32_t generation;
    Interest interest;
  };
  struct Event {
    NativeHandle handle;
    uint32_t generation;
    int16_t events;
  };

  int Watch(NativeHandle handle, uint32_t generation, Interest interest, bool is_known) override;
  bool Forget(NativeHandle handle) override;

  size_t PlaceOf(NativeHandle handle) const;
  int Ask(bool may_sleep, TimePoint deadline, bool* was_woken);
  void Report(const Event& event, ReadyQueue* done);

  std::vector<Watched> watched_;
  std::vector<uint32_t> places_;  // By handle: one more than that in `watched_`.
  std::vector<pollfd> entries_;   // For the call: the waker's, and then `watched_`.
  std::vector<Event> events_;     // What it brought.
  std::shared_ptr<PipeWaker> waker_ = std::make_shared<PipeWaker>();
  ReadinessTable table_{this, &ended_, &pending_};
};

absl::Status PollPoller::Wait(TimePoint deadline, ReadyQueue* done) {
  Collect(done);
  ReadyQueue finished;
  table_.ServeKicked(&finished);
  bool may_sleep = done->empty() && finished.empty() && !table_.has_kicked();
  do {
    bool was_woken = false;
    const int error = Ask(may_sleep, deadline, &was_woken);
    if (error == -EINTR) break;  // Somebody may want to look at what the signal did.
    if (error != 0) return SystemError("poll", -error);
    for (const Event& event : events_) Report(event, &finished);
    // A report that meant nothing is no reason to return.
    if (was_woken || !finished.empty() || !ended_.empty() || table_.has_kicked()) break;
  } while (may_sleep && SteadyClock::Read() < deadline);
  done->Splice(&finished);
  Collect(done);
  return absl::OkStatus();
}

// One poll(2); what there is to report is in `events_` then. 0 or a negated errno.
int PollPoller::Ask(bool may_sleep, TimePoint deadline, bool* was_woken) {
  events_.clear();
  const int waker_fd = may_sleep ? waker_->Open() : waker_->fd();
  const bool is_nap = may_sleep && waker_fd < 0;
  if (is_nap && !internal::IsShortage(-waker_fd)) return waker_fd;
  try {
    entries_.resize(1 + watched_.size());
    events_.reserve(watched_.size());
  } catch (const std::bad_alloc&) {
    return -ENOMEM;
  }
  entries_[0] = {std::max(waker_fd, -1), POLLIN, 0};
  for (size_t i = 0; i < watched_.size(); ++i) {
    const Watched& watched = watched_[i];
    const Interest wanted =
        watched.interest.edge ? table_.WaitingFor(watched.handle) : watched.interest;
    const int events = (wanted.read ? POLLIN : 0) | (wanted.write ? POLLOUT : 0);
    // One that nobody waits for is passed over, or its end would be reported.
    const int fd = events != 0 ? static_cast<int>(watched.handle) : -1;
    entries_[1 + i] = {fd, static_cast<int16_t>(events), 0};
  }

  const nfds_t size = static_cast<nfds_t>(entries_.size());
  int count;
  do {
    int timeout = 0;
    if (may_sleep) {
      timeout = is_nap ? internal::NapUntil(deadline) : internal::MillisecondsUntil(deadline);
    }
    count = ::poll(entries_.data(), size, timeout);
  } while (count < 0 && errno == EINTR && !may_sleep);
  if (count < 0) return -errno;
  if (is_nap) *was_woken = true;  // For all we know.
  if (count == 0) return 0;
  if (entries_[0].revents != 0) {
    waker_->Drain();
    *was_woken = true;
  }
  for (size_t i = 0; i < watched_.size(); ++i) {
    const int16_t events = entries_[1 + i].revents;
    if (events != 0) events_.push_back({watched_[i].handle, watched_[i].generation, events});
  }
  return 0;
}

void PollPoller::Report(const Event& event, ReadyQueue* done) {
  if ((event.events & POLLNVAL) != 0) {
    table_.Lose(event.handle, event.generation);  // Closed without our knowledge.
    Forget(event.handle);
    return;
  }
  const Readiness readiness = {.readable = (event.events & (POLLIN | POLLHUP | POLLERR)) != 0,
                               .writable = (event.events & (POLLOUT | POLLHUP | POLLERR)) != 0,
                               .is_exceptional = false};
  table_.Report(event.handle, event.generation, readiness, done);
}

int PollPoller::Watch(NativeHandle handle, uint32_t generation, Interest interest, bool is_known) {
  if (!is_known) {
    struct stat status;
    if (::fstat(static_cast<int>(handle), &status) < 0) return -errno;
    // poll(2) would say that they are always ready, for want of an answer.
    if (S_ISREG(status.st_mode) || S_ISDIR(status.st_mode)) return -EPERM;
    // When a server has used up its descriptors, it is too late for it.
    if (waker_->fd() < 0) waker_->Open();
  }
  size_t place = PlaceOf(handle);
  if (place == watched_.size()) {
    try {
      const size_t index = static_cast<size_t>(handle);
      if (index >= places_.size()) places_.resize(std::max(index + 1, 2 * places_.size()));
      watched_.push_back({});
    } catch (const std::bad_alloc&) {
      return -ENOMEM;
    }
    places_[static_cast<size_t>(handle)] = static_cast<uint32_t>(place + 1);
  }
  watched_[place] = {handle, generation, interest};
  return 0;
}

bool PollPoller::Forget(NativeHandle handle) {
  const size_t place = PlaceOf(handle);
  if (place == watched_.size()) return true;
  places_[static_cast<size_t>(watched_.back().handle)] = static_cast<uint32_t>(place + 1);
  watched_[place] = watched_.back();
  watched_.pop_back();
  places_[static_cast<size_t>(handle)] = 0;
  return true;
}

// Where it is in `watched_`; the end of that if it is not.
size_t PollPoller::PlaceOf(NativeHandle handle) const {
  const size_t index = static_cast<size_t>(handle);
  return index < places_.size() && places_[index] != 0 ? places_[index] - 1 : watched_.size();
}

}  // namespace

std::unique_ptr<Poller> MakePollPoller() { return std::make_unique<PollPoller>(); }

}  // namespace weft

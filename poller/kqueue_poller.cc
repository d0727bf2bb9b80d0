// Copyright 2026 The weft Authors.
// SPDX-License-Identifier: Apache-2.0

// Readiness by kqueue(2). Which operation is next, and what it does, is in
// `readiness_table`. Here is only the talk with this kernel.
//
// What shapes it:
//   * The two directions of a descriptor are two filters, registered, reported and
//     refused each by itself. Changes go before the operation is parked, both in
//     one call and not with the next wait: the table wants to know at once whether a
//     descriptor can be watched.
//   * Adding a filter, also one that is there, reports what is ready by then.
//     But whether it stands for changes (EV_CLEAR) or for states is decided when it
//     comes into being, so going over from one to the other is to delete and to add.
//   * Closing a descriptor deletes its filters. So a number that has come back for
//     another file shows by a filter that is not there any more (ENOENT), and nothing
//     is reported of a file that a duplicate keeps open.
//   * A filter can be refused for what it would report: that of writing to a pipe
//     which nobody reads is EPIPE on some systems. Whoever waits is to try then.
//   * The end of a stream comes with the filter of its direction, as EV_EOF, behind or
//     together with data. Urgent data ends a read early. Where that is not
//     reported (EV_OOBAND), a short read says nothing.
//   * Deadlines are the timeout of the call. A timer of its own is there only for
//     who lives in a foreign loop.

#include "weft/poller/kqueue_poller.h"

#include <errno.h>
#include <sys/event.h>
#include <sys/stat.h>

#include <algorithm>
#include <cstdint>
#include <cstring>
#include <ctime>
#include <memory>
#include <new>
#include <utility>
#include <vector>

#include "absl/base/optimization.h"
#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "weft/core/clock.h"
#include "weft/poller/handle_table.h"
#include "weft/poller/kqueue_waker.h"
#include "weft/poller/readiness_table.h"
#include "weft/poller/shortage_posix.h"

namespace weft {

namespace {

using internal::HandleTable;
using internal::Interest;
using internal::KqueueWaker;
using internal::Readiness;
using internal::ReadinessSource;
using internal::ReadinessTable;

#ifdef EV_OOBAND
constexpr uint16_t kUrgent = EV_OOBAND;
constexpr bool kReportsUrgent = true;
#else
constexpr uint16_t kUrgent = 0;
constexpr bool kReportsUrgent = false;
#endif

absl::Status SystemError(const char* call, int error) {
  const std::string message = absl::StrCat("kqueue poller: ", call, ": ", std::strerror(error));
  return internal::IsShortage(error) ? absl::ResourceExhaustedError(message)
                                     : absl::InternalError(message);
}

void* ToUserData(uint32_t generation) {
  return reinterpret_cast<void*>(static_cast<uintptr_t>(generation));
}

uint32_t GenerationOf(const struct kevent& event) {
  return static_cast<uint32_t>(reinterpret_cast<uintptr_t>(event.udata));
}

class KqueuePoller final : public Poller, private ReadinessSource {
 public:
  KqueuePoller() {}  // Not defaulted: `events_` need not be zeroed.

  std::string_view name() const override { return "kqueue"; }
  StartResult Start(Operation* op) override { return table_.Start(op); }
  void Cancel(Operation* op) override { table_.Cancel(op); }
  void CancelAll() override { table_.CancelAll(); }
  StartResult FetchLent(Operation* op, SlabPool* pool, Slab* slab) override {
    return table_.FetchLent(op, pool, slab);
  }
  std::shared_ptr<Waker> MakeWaker() override { return waker_; }

  absl::Status Wait(TimePoint deadline, ReadyQueue* done) override;
  NativeHandle BackendFd() override;
  void ArmBackend(TimePoint deadline) override;

 private:
  // What one call brings at most, and how many are made in one `Wait()` as long as
  // each brings so many.
  static constexpr int kBatch = 256;
  static constexpr int kMaxBatches = 16;
  static constexpr int16_t kNone = -1;

  enum Direction : uint8_t { kRead = 0, kWrite = 1 };
  enum class Filter : uint8_t { kNone, kLevel, kEdge, kRefused };

  static bool IsThere(Filter filter) { return filter == Filter::kLevel || filter == Filter::kEdge; }
  static int FlagsToAdd(Filter filter) {
    return filter == Filter::kEdge ? EV_ADD | EV_CLEAR : EV_ADD;
  }

  struct Entry {
    Filter filters[2] = {Filter::kNone, Filter::kNone};
    int16_t read_event = kNone;  // The place in `events_` of one that is to be reported.
  };

  // A handle of which a filter was refused, and is always taken for ready.
  struct Refused {
    NativeHandle handle;
    uint32_t generation;
  };

  int Watch(NativeHandle handle, uint32_t generation, Interest interest, bool is_known) override;
  bool Forget(NativeHandle handle) override;

  Entry* EntryOf(const struct kevent& event) const {
    return entries_.Find(static_cast<NativeHandle>(event.ident));
  }
  static struct kevent MakeChange(NativeHandle handle, Direction direction, int flags,
                                  uint32_t generation = 0);

  // 0 or a negated errno, as those below.
  int Change(struct kevent* changes, int count);
  int ChangeOne(struct kevent change) { return Change(&change, 1); }
  int KeepKnown(NativeHandle handle, Entry* entry, const Filter* wanted);
  int Add(NativeHandle handle, uint32_t generation, Entry* entry, const Filter* wanted);
  int AddEach(NativeHandle handle, uint32_t generation, Entry* entry, const Filter* wanted);
  void ForgetRefused(NativeHandle handle, Entry* entry);
  void ReportRefused(ReadyQueue* done);

  int Fetch(TimePoint deadline, bool may_sleep, ReadyQueue* done, bool* was_woken);
  void Report(const struct kevent& event, ReadyQueue* done);

  std::shared_ptr<KqueueWaker> waker_ = std::make_shared<KqueueWaker>();
  HandleTable<Entry> entries_;
  std::vector<Refused> refused_;  // Almost always empty.
  ReadinessTable table_{this, &ended_, &pending_};
  struct kevent events_[kBatch];
};

absl::Status KqueuePoller::Wait(TimePoint deadline, ReadyQueue* done) {
  Collect(done);
  bool may_sleep = done->empty() && deadline.nanoseconds() > 0;
  ReadyQueue finished;
  if (table_.has_kicked()) table_.ServeKicked(&finished);
  if (ABSL_PREDICT_FALSE(!refused_.empty())) ReportRefused(&finished);
  if (!finished.empty() || !ended_.empty() || table_.has_kicked()) may_sleep = false;

  // Nothing is watched, so nothing can have come.
  if (may_sleep || waker_->fd() >= 0) {
    int count;
    int batches = 0;
    do {
      bool was_woken = false;
      count = Fetch(deadline, may_sleep, &finished, &was_woken);
      if (count == -EINTR) break;  // Somebody may want to look at what the signal did.
      if (count < 0) return SystemError("kevent", -count);
      // A report that meant nothing, or a timer of old, is no reason to return.
      if (was_woken || !finished.empty() || !ended_.empty() || table_.has_kicked()) {
        may_sleep = false;
      }
      if (count == kBatch && ++batches == kMaxBatches) break;
    } while (count == kBatch || (may_sleep && SteadyClock::Read() < deadline));
  }
  done->Splice(&finished);
  Collect(done);
  return absl::OkStatus();
}

// How many events one call brought, or a negated errno.
int KqueuePoller::Fetch(TimePoint deadline, bool may_sleep, ReadyQueue* done, bool* was_woken) {
  const int fd = may_sleep ? waker_->Open() : waker_->fd();
  if (ABSL_PREDICT_FALSE(fd < 0)) {
    if (!internal::IsShortage(-fd)) return fd;
    *was_woken = true;  // For all we know.
    return internal::Nap(internal::NapUntil(deadline)) ? 0 : -EINTR;
  }
  // An hour at most: not every system takes any number. Who called goes on.
  constexpr int64_t kLongest = 3'600'000'000'000;
  int count;
  do {
    timespec timeout = {};
    if (may_sleep) {
      int64_t left = kLongest;
      if (deadline != TimePoint::InfiniteFuture()) {
        left = deadline.nanoseconds() - SteadyClock::Read().nanoseconds();
        left = std::clamp<int64_t>(left, 0, kLongest);
      }
      timeout.tv_sec = static_cast<time_t>(left / 1'000'000'000);
      timeout.tv_nsec = static_cast<long>(left % 1'000'000'000);
    }
    count = ::kevent(fd, nullptr, 0, events_, kBatch, &timeout);
  } while (count < 0 && errno == EINTR && !may_sleep);
  if (count < 0) return -errno;

  // Of one handle the reader is before the writer.
  for (int i = 0; i < count; ++i) {
    if (events_[i].filter == EVFILT_READ) EntryOf(events_[i])->read_event = static_cast<int16_t>(i);
  }
  for (int i = 0; i < count; ++i) {
    const struct kevent& event = events_[i];
    if (event.filter == EVFILT_USER) {
      waker_->Acquire();
      *was_woken = true;
    } else if (event.filter == EVFILT_READ || event.filter == EVFILT_WRITE) {
      const int16_t read_event = std::exchange(EntryOf(event)->read_event, kNone);
      if (read_event != kNone) Report(events_[read_event], done);
      if (event.filter == EVFILT_WRITE) Report(event, done);
    }
  }
  return count;
}

void KqueuePoller::Report(const struct kevent& event, ReadyQueue* done) {
  const bool is_read = event.filter == EVFILT_READ;
  const Readiness readiness = {
      .readable = is_read,
      .writable = !is_read,
      .is_exceptional = !kReportsUrgent || (event.flags & (EV_EOF | kUrgent)) != 0};
  const NativeHandle handle = static_cast<NativeHandle>(event.ident);
  if (table_.Report(handle, GenerationOf(event), readiness, done)) return;
  // It is of a file that the number does not stand for any more, and its filter should
  // have gone. One that was added since is in the name of the new one.
  const Direction direction = is_read ? kRead : kWrite;
  if (!IsThere(EntryOf(event)->filters[direction])) {
    ChangeOne(MakeChange(handle, direction, EV_DELETE));
  }
}

// Each time anew, until the handle is forgotten: nothing else will tell.
void KqueuePoller::ReportRefused(ReadyQueue* done) {
  for (size_t i = 0; i < refused_.size();) {
    const Refused each = refused_[i];
    Entry* entry = entries_.Find(each.handle);
    const Readiness readiness = {.readable = entry->filters[kRead] == Filter::kRefused,
                                 .writable = entry->filters[kWrite] == Filter::kRefused,
                                 .is_exceptional = true};
    if (!table_.Report(each.handle, each.generation, readiness, done)) {
      ForgetRefused(each.handle, entry);
    }
    // Another may have taken its place.
    if (i < refused_.size() && refused_[i].handle == each.handle) ++i;
  }
}

// -- Watching.

struct kevent KqueuePoller::MakeChange(NativeHandle handle, Direction direction, int flags,
                                       uint32_t generation) {
  struct kevent change;
  EV_SET(&change, static_cast<uintptr_t>(handle), direction == kRead ? EVFILT_READ : EVFILT_WRITE,
         static_cast<uint16_t>(flags), 0, 0, ToUserData(generation));
  return change;
}

int KqueuePoller::Change(struct kevent* changes, int count) {
  if (count == 0) return 0;
  while (::kevent(waker_->fd(), changes, count, nullptr, 0, nullptr) < 0) {
    if (errno != EINTR) return -errno;
  }
  return 0;
}

int KqueuePoller::Watch(NativeHandle handle, uint32_t generation, Interest interest,
                        bool is_known) {
  int64_t no_entry = 0;
  Entry* entry = entries_.Get(handle, &no_entry);
  if (entry == nullptr) return static_cast<int>(no_entry);
  if (const int fd = waker_->Open(); fd < 0) return fd;
  const Filter kind = interest.edge ? Filter::kEdge : Filter::kLevel;
  const Filter wanted[2] = {interest.edge || interest.read ? kind : Filter::kNone,
                            interest.edge || interest.write ? kind : Filter::kNone};
  ForgetRefused(handle, entry);
  if (is_known) {
    if (const int error = KeepKnown(handle, entry, wanted)) return error;
  } else {
    struct stat status;
    if (::fstat(static_cast<int>(handle), &status) < 0) return -errno;
    // Its filter would report whether there is more behind its position.
    if (S_ISREG(status.st_mode) || S_ISDIR(status.st_mode)) return -EPERM;
    *entry = Entry();
  }
  return Add(handle, generation, entry, wanted);
}

// Deletes what is not wanted any more, or otherwise, and asks whether the rest is still
// there: -ENOENT if not.
int KqueuePoller::KeepKnown(NativeHandle handle, Entry* entry, const Filter* wanted) {
  for (Direction direction : {kRead, kWrite}) {
    Filter& filter = entry->filters[direction];
    if (!IsThere(filter)) continue;
    const bool stays = filter == wanted[direction];
    if (!stays) filter = Filter::kNone;
    const int error = ChangeOne(MakeChange(handle, direction, stays ? EV_ENABLE : EV_DELETE));
    if (error != 0) {
      *entry = Entry();
      return error;
    }
  }
  return 0;
}

// Both filters in one call. If that is refused, each by itself.
int KqueuePoller::Add(NativeHandle handle, uint32_t generation, Entry* entry,
                      const Filter* wanted) {
  struct kevent changes[2];
  int count = 0;
  for (Direction direction : {kRead, kWrite}) {
    if (wanted[direction] == Filter::kNone) continue;
    changes[count++] = MakeChange(handle, direction, FlagsToAdd(wanted[direction]), generation);
  }
  if (ABSL_PREDICT_FALSE(Change(changes, count) != 0)) {
    return AddEach(handle, generation, entry, wanted);
  }
  for (Direction direction : {kRead, kWrite}) entry->filters[direction] = wanted[direction];
  return 0;
}

// As many as can be had; an error if none can.
int KqueuePoller::AddEach(NativeHandle handle, uint32_t generation, Entry* entry,
                          const Filter* wanted) {
  int error = 0;
  bool has_any = false;
  bool is_refused = false;
  for (Direction direction : {kRead, kWrite}) {
    Filter& filter = entry->filters[direction];
    filter = wanted[direction];
    if (filter == Filter::kNone) continue;
    const int refusal = ChangeOne(MakeChange(handle, direction, FlagsToAdd(filter), generation));
    if (refusal == -EPIPE) {
      filter = Filter::kRefused;
      is_refused = true;
    } else if (refusal != 0) {
      filter = Filter::kNone;
      error = refusal;
    }
    if (filter != Filter::kNone) has_any = true;
  }
  // A device that has no filters is as a file.
  if (!has_any) return error == -EINVAL || error == -ENODEV ? -EPERM : error;
  if (is_refused) {
    try {
      refused_.push_back({handle, generation});
    } catch (const std::bad_alloc&) {
      Forget(handle);
      return -ENOMEM;
    }
  }
  return 0;
}

bool KqueuePoller::Forget(NativeHandle handle) {
  Entry* entry = entries_.Find(handle);
  ForgetRefused(handle, entry);
  struct kevent changes[2];
  int count = 0;
  for (Direction direction : {kRead, kWrite}) {
    if (IsThere(entry->filters[direction])) {
      changes[count++] = MakeChange(handle, direction, EV_DELETE);
    }
  }
  *entry = Entry();
  // A call ends with the first change that fails. One that is not there has gone with
  // its file, and so has the other.
  Change(changes, count);
  return true;
}

void KqueuePoller::ForgetRefused(NativeHandle handle, Entry* entry) {
  for (Filter& filter : entry->filters) {
    if (filter == Filter::kRefused) filter = Filter::kNone;
  }
  for (size_t i = 0; i < refused_.size(); ++i) {
    if (refused_[i].handle != handle) continue;
    refused_[i] = refused_.back();
    refused_.pop_back();
    return;
  }
}

// -- In a foreign loop.

NativeHandle KqueuePoller::BackendFd() {
  const int fd = waker_->Open();
  return fd < 0 ? kInvalidHandle : fd;
}

void KqueuePoller::ArmBackend(TimePoint deadline) {
  if (waker_->fd() < 0) return;
  if (!ended_.empty() || table_.has_kicked() || !refused_.empty())
    deadline = TimePoint::InfinitePast();
  struct kevent change;
  if (deadline == TimePoint::InfiniteFuture()) {
    EV_SET(&change, 0, EVFILT_TIMER, EV_DELETE, 0, 0, nullptr);
    ChangeOne(change);  // If there is one.
    return;
  }
  const int milliseconds = internal::MillisecondsUntil(deadline);
  if (milliseconds == 0) return waker_->Wake();
  EV_SET(&change, 0, EVFILT_TIMER, EV_ADD | EV_ONESHOT, 0, milliseconds, nullptr);
  ChangeOne(change);
}

}  // namespace

std::unique_ptr<Poller> MakeKqueuePoller() { return std::make_unique<KqueuePoller>(); }

}  // namespace weft

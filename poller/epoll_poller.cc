// Copyright 2026 The weft Authors.
// SPDX-License-Identifier: Apache-2.0

// Readiness by epoll(7). Which operation is next, and what it does, is in
// `readiness_table`. Here is only the talk with this kernel.
//
// What shapes it:
//   * Adding a handle, or changing how it is watched, reports it at once if it is
//     ready by then. So nothing is lost between the try that would have blocked
//     and `EPOLL_CTL_ADD`. What an event says is looked up when it is fetched,
//     not when it is raised (ep_send_events() in fs/eventpoll.c).
//   * epoll keys its set by descriptor *and* open file. A descriptor closed without
//     our knowledge stays in the set while a duplicate of it is open, and its number
//     may come back for another file: both are then in the set, and the old one can
//     no longer be named, so not be removed. That is why a socket is closed by
//     `kRetire` only, why an event carries a generation, and why the set is made
//     anew when a stale event shows that it happened all the same: level-triggered,
//     such an event would be reported for ever.
//   * Data and FIN may come in one event. After a short read nothing more would be
//     reported, so EPOLLRDHUP is asked for. EPOLLPRI tells of urgent data.
//   * `epoll_wait` counts in milliseconds, and its successor with nanoseconds was
//     measured to be late by 64 us to 2 ms; a timerfd by 13 to 58 us. So a deadline
//     is the absolute time of a timerfd in the set. It is set again only for an
//     earlier deadline: most are cancelled, and waking once for a cancelled one
//     is cheaper than a system call for each.
//   * Neither the eventfd nor the timerfd is ever read: edge-triggered, each write
//     and each expiry is a change of its own.
//   * All three are opened together, when the first is needed: a server that has used
//     up its descriptors by the time of its first timer must not end for want of one.
//     One that cannot be had is asked for again before each sleep; until then
//     `epoll_wait` has to keep the time, and without the eventfd sleeps in naps.

#include "weft/poller/epoll_poller.h"

#include <errno.h>
#include <sys/epoll.h>
#include <sys/timerfd.h>
#include <unistd.h>

#include <cstdint>
#include <cstring>
#include <ctime>
#include <utility>

#include "absl/base/optimization.h"
#include "absl/strings/str_cat.h"
#include "weft/core/clock.h"
#include "weft/poller/eventfd_waker_linux.h"
#include "weft/poller/readiness_table.h"
#include "weft/poller/shortage_posix.h"
#include "weft/poller/standard_streams_posix.h"

namespace weft {

namespace {

using internal::EventfdWaker;
using internal::Interest;
using internal::Readiness;
using internal::ReadinessSource;
using internal::ReadinessTable;

// Generations begin at 1, so no handle's tag is less than 2^32.
constexpr uint64_t kWakerTag = 0;
constexpr uint64_t kTimerTag = 1;

uint64_t Tag(NativeHandle handle, uint32_t generation) {
  return uint64_t{generation} << 32 | static_cast<uint32_t>(handle);
}

absl::Status SystemError(const char* call, int error) {
  const std::string message = absl::StrCat("epoll poller: ", call, ": ", std::strerror(error));
  return internal::IsShortage(error) ? absl::ResourceExhaustedError(message)
                                     : absl::InternalError(message);
}

class EpollPoller final : public Poller, private ReadinessSource {
 public:
  ~EpollPoller() override {
    for (int fd : {epoll_fd_, timer_fd_, outer_fd_}) {
      if (fd >= 0) ::close(fd);
    }
  }

  std::string_view name() const override { return "epoll"; }
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
  // What one `epoll_wait` brings at most, and how many are made in one `Wait()` as
  // long as each brings so many: a round takes what is ready, as asyncio's does,
  // but has an end.
  static constexpr int kBatch = 256;
  static constexpr int kMaxBatches = 16;

  // What the events of one batch amounted to.
  struct Batch {
    int size = 0;
    bool was_woken = false;
    bool was_due = false;  // The timerfd has expired.
    bool was_stale = false;
  };

  int Watch(NativeHandle handle, uint32_t generation, Interest interest, bool is_known) override;
  bool Forget(NativeHandle handle) override;

  int Open();  // 0 or a negated errno, as the next five.
  int OpenToBeWoken();
  int OpenTimer();
  int AddOwn(int fd, uint64_t tag);
  int ArmTimer(TimePoint deadline);
  int PrepareSleep(TimePoint deadline, int* timeout);
  int Fetch(int timeout, ReadyQueue* done, Batch* batch);
  void Rebuild();

  int epoll_fd_ = -1;
  int timer_fd_ = -1;
  int outer_fd_ = -1;  // For a foreign loop; holds `epoll_fd_`, which may change.
  TimePoint armed_ = TimePoint::InfiniteFuture();  // When the timerfd will expire.
  bool watches_waker_ = false;
  std::shared_ptr<EventfdWaker> waker_ = std::make_shared<EventfdWaker>();
  ReadinessTable table_{this, &ended_, &pending_};
};

absl::Status EpollPoller::Wait(TimePoint deadline, ReadyQueue* done) {
  Collect(done);
  bool may_sleep = done->empty() && deadline.nanoseconds() > 0;
  if (table_.has_kicked()) {
    ReadyQueue served;
    table_.ServeKicked(&served);
    if (!served.empty() || table_.has_kicked()) may_sleep = false;
    done->Splice(&served);
  }
  // Nothing is watched, so nothing can have come.
  if (!may_sleep && epoll_fd_ < 0) return absl::OkStatus();

  ReadyQueue finished;
  Batch batch;
  int batches = 0;
  do {
    int timeout = 0;
    if (may_sleep) {
      if (const int error = PrepareSleep(deadline, &timeout)) return SystemError("open", -error);
    }
    batch = Batch();
    const int error = Fetch(timeout, &finished, &batch);
    if (error == -EINTR) break;  // Somebody may want to look at what the signal did.
    if (error != 0) return SystemError("epoll_wait", -error);
    // A report that meant nothing, or the expiry for a deadline of old, is no reason
    // to return.
    if (!finished.empty() || batch.was_woken) may_sleep = false;
    // It has kept the time itself; or it was a nap, in which somebody may have tried to
    // wake us.
    if (timeout >= 0 && may_sleep) may_sleep = watches_waker_ && SteadyClock::Read() < deadline;
    if (batch.was_due) {
      if (armed_ >= deadline) may_sleep = false;
      armed_ = TimePoint::InfiniteFuture();
    }
    if (!ended_.empty() || table_.has_kicked()) may_sleep = false;
    if (batch.size == kBatch && ++batches == kMaxBatches) break;
  } while (may_sleep || batch.size == kBatch);
  done->Splice(&finished);
  Collect(done);
  return absl::OkStatus();
}

// `*timeout` is for how long epoll_wait(2) may sleep, in milliseconds; -1 if it will be
// ended by one of ours. That what can do so cannot be had is no error.
int EpollPoller::PrepareSleep(TimePoint deadline, int* timeout) {
  const int no_wake = OpenToBeWoken();
  const int no_timer = ArmTimer(deadline);
  for (const int error : {no_wake, no_timer}) {
    if (error != 0 && !internal::IsShortage(-error)) return error;
  }
  *timeout = no_timer != 0 ? internal::MillisecondsUntil(deadline) : -1;
  if (no_wake != 0) *timeout = internal::NapUntil(deadline);
  return 0;
}

int EpollPoller::Fetch(int timeout, ReadyQueue* done, Batch* batch) {
  if (epoll_fd_ < 0) return internal::Nap(timeout) ? 0 : -EINTR;
  epoll_event fetched[kBatch];
  do {
    batch->size = ::epoll_wait(epoll_fd_, fetched, kBatch, timeout);
  } while (batch->size < 0 && errno == EINTR && timeout == 0);
  if (batch->size < 0) return -errno;
  for (int i = 0; i < batch->size; ++i) {
    const uint64_t tag = fetched[i].data.u64;
    const uint32_t events = fetched[i].events;
    if (tag == kWakerTag) {
      waker_->Acquire();
      batch->was_woken = true;
    } else if (tag == kTimerTag) {
      batch->was_due = true;
    } else {
      const Readiness readiness = {
          .readable = (events & (EPOLLIN | EPOLLRDHUP | EPOLLPRI | EPOLLHUP | EPOLLERR)) != 0,
          .writable = (events & (EPOLLOUT | EPOLLHUP | EPOLLERR)) != 0,
          .is_exceptional = (events & (EPOLLRDHUP | EPOLLPRI | EPOLLHUP | EPOLLERR)) != 0};
      const NativeHandle handle = static_cast<NativeHandle>(tag & 0xffffffffu);
      if (!table_.Report(handle, static_cast<uint32_t>(tag >> 32), readiness, done)) {
        batch->was_stale = true;
      }
    }
  }
  if (batch->was_stale) Rebuild();
  return 0;
}

int EpollPoller::Watch(NativeHandle handle, uint32_t generation, Interest interest, bool is_known) {
  if (const int error = Open()) return error;
  epoll_event event = {};
  event.data.u64 = Tag(handle, generation);
  event.events = interest.edge ? EPOLLIN | EPOLLOUT | EPOLLRDHUP | EPOLLPRI | EPOLLET
                               : (interest.read ? EPOLLIN : 0u) | (interest.write ? EPOLLOUT : 0u);
  const int fd = static_cast<int>(handle);
  if (::epoll_ctl(epoll_fd_, is_known ? EPOLL_CTL_MOD : EPOLL_CTL_ADD, fd, &event) == 0) return 0;
  // It is in the set from a life that we took for ended: closed without our
  // knowledge, and come back as a duplicate of the same open file.
  if (errno == EEXIST && ::epoll_ctl(epoll_fd_, EPOLL_CTL_MOD, fd, &event) == 0) return 0;
  return -errno;
}

bool EpollPoller::Forget(NativeHandle handle) {
  return ::epoll_ctl(epoll_fd_, EPOLL_CTL_DEL, static_cast<int>(handle), nullptr) == 0;
}

// Replaces the set by one that holds only what we know of. If there is no
// descriptor for it, the old one stays, and the next stale event tries again.
void EpollPoller::Rebuild() {
  const int made = internal::AboveStandardStreams(::epoll_create1(EPOLL_CLOEXEC));
  if (made < 0) return;
  const int old = std::exchange(epoll_fd_, made);
  watches_waker_ = watches_waker_ && AddOwn(waker_->Open(), kWakerTag) == 0;
  if (timer_fd_ >= 0 && AddOwn(timer_fd_, kTimerTag) != 0) {
    ::close(std::exchange(timer_fd_, -1));
    armed_ = TimePoint::InfiniteFuture();
  }
  table_.WatchAgain();
  if (outer_fd_ >= 0) {
    epoll_event event = {.events = EPOLLIN, .data = {}};
    ::epoll_ctl(outer_fd_, EPOLL_CTL_DEL, old, nullptr);
    ::epoll_ctl(outer_fd_, EPOLL_CTL_ADD, epoll_fd_, &event);
  }
  ::close(old);
}

int EpollPoller::Open() {
  if (ABSL_PREDICT_TRUE(epoll_fd_ >= 0)) return 0;
  const int opened = internal::AboveStandardStreams(::epoll_create1(EPOLL_CLOEXEC));
  if (opened < 0) return opened;
  epoll_fd_ = opened;
  OpenToBeWoken();
  OpenTimer();
  return 0;
}

int EpollPoller::OpenToBeWoken() {
  if (ABSL_PREDICT_TRUE(watches_waker_)) return 0;
  if (const int error = Open()) return error;
  if (watches_waker_) return 0;
  const int fd = waker_->Open();
  if (fd < 0) return fd;
  if (const int error = AddOwn(fd, kWakerTag)) return error;
  watches_waker_ = true;
  return 0;
}

int EpollPoller::OpenTimer() {
  if (ABSL_PREDICT_TRUE(timer_fd_ >= 0)) return 0;
  if (const int error = Open()) return error;
  if (timer_fd_ >= 0) return 0;
  const int fd =
      internal::AboveStandardStreams(::timerfd_create(CLOCK_MONOTONIC, TFD_CLOEXEC | TFD_NONBLOCK));
  if (fd < 0) return fd;
  if (const int error = AddOwn(fd, kTimerTag)) {
    ::close(fd);
    return error;
  }
  timer_fd_ = fd;
  return 0;
}

int EpollPoller::AddOwn(int fd, uint64_t tag) {
  epoll_event event = {};
  event.events = EPOLLIN | EPOLLET;
  event.data.u64 = tag;
  return ::epoll_ctl(epoll_fd_, EPOLL_CTL_ADD, fd, &event) == 0 ? 0 : -errno;
}

int EpollPoller::ArmTimer(TimePoint deadline) {
  if (deadline >= armed_) return 0;  // Also if there is no deadline.
  if (const int error = OpenTimer()) return error;
  itimerspec when = {};
  when.it_value.tv_sec = static_cast<time_t>(deadline.nanoseconds() / 1'000'000'000);
  when.it_value.tv_nsec = static_cast<long>(deadline.nanoseconds() % 1'000'000'000);
  if (::timerfd_settime(timer_fd_, TFD_TIMER_ABSTIME, &when, nullptr) < 0) return -errno;
  armed_ = deadline;
  return 0;
}

NativeHandle EpollPoller::BackendFd() {
  if (outer_fd_ >= 0) return outer_fd_;
  if (OpenToBeWoken() != 0 || OpenTimer() != 0) return kInvalidHandle;
  const int fd = ::epoll_create1(EPOLL_CLOEXEC);
  if (fd < 0) return kInvalidHandle;
  epoll_event event = {.events = EPOLLIN, .data = {}};
  if (::epoll_ctl(fd, EPOLL_CTL_ADD, epoll_fd_, &event) < 0) {
    ::close(fd);
    return kInvalidHandle;
  }
  return outer_fd_ = fd;
}

void EpollPoller::ArmBackend(TimePoint deadline) {
  if (epoll_fd_ < 0) return;
  const TimePoint past = TimePoint::FromNanoseconds(1);  // Zero would disarm.
  const bool is_due = !ended_.empty() || table_.has_kicked() || deadline < past;
  ArmTimer(is_due ? past : deadline);
}

}  // namespace

std::unique_ptr<Poller> MakeEpollPoller() { return std::make_unique<EpollPoller>(); }

absl::Status ProbeEpoll() {
  const int epoll_fd = ::epoll_create1(EPOLL_CLOEXEC);
  if (epoll_fd < 0) return SystemError("epoll_create1", errno);
  ::close(epoll_fd);
  const int event_fd = EventfdWaker().Open();
  if (event_fd < 0) return SystemError("eventfd", -event_fd);
  const int timer_fd = ::timerfd_create(CLOCK_MONOTONIC, TFD_CLOEXEC);
  if (timer_fd < 0) return SystemError("timerfd_create", errno);
  ::close(timer_fd);
  return absl::OkStatus();
}

}  // namespace weft

// Copyright 2026 The weft Authors.
// SPDX-License-Identifier: Apache-2.0

// [snippet select-poller]
#include "weft/docs/select_poller.h"

#include <errno.h>
#include <sys/select.h>
#include <sys/stat.h>

#include <algorithm>
#include <cstring>
#include <map>
#include <vector>

#include "absl/strings/str_cat.h"
#include "weft/core/clock.h"
#include "weft/poller/pipe_waker_posix.h"
#include "weft/poller/readiness_table.h"
#include "weft/poller/shortage_posix.h"

namespace weft {
namespace {

// What backends are made of, and nothing else.
using internal::Interest;
using internal::MillisecondsUntil;
using internal::NapUntil;
using internal::PipeWaker;
using internal::Readiness;
using internal::ReadinessSource;
using internal::ReadinessTable;

// An fd_set for descriptors below `size`: that of the C library ends at 1024, the kernel's
// does not.
class FdSet {
 public:
  explicit FdSet(int size) : words_(Word(size) + 1) {}
  void Add(int fd) { words_[Word(fd)] |= Bit(fd); }
  bool Has(int fd) const { return (words_[Word(fd)] & Bit(fd)) != 0; }
  fd_set* get() { return reinterpret_cast<fd_set*>(words_.data()); }

 private:
  static constexpr int kBits = 8 * sizeof(unsigned long);
  static size_t Word(int fd) { return static_cast<size_t>(fd / kBits); }
  static unsigned long Bit(int fd) { return 1UL << (fd % kBits); }

  std::vector<unsigned long> words_;
};

class SelectPoller final : public Poller, private ReadinessSource {
 public:
  std::string_view name() const override { return "select"; }

  // What is tried, parked and retried, and in which order: the table knows.
  StartResult Start(Operation* op) override { return table_.Start(op); }
  void Cancel(Operation* op) override { table_.Cancel(op); }
  void CancelAll() override { table_.CancelAll(); }
  StartResult FetchLent(Operation* op, SlabPool* pool, Slab* slab) override {
    return table_.FetchLent(op, pool, slab);
  }
  std::shared_ptr<Waker> MakeWaker() override { return waker_; }

  absl::Status Wait(TimePoint deadline, ReadyQueue* done) override {
    Collect(done);
    ReadyQueue finished;
    table_.ServeKicked(&finished);
    // Not if there is something to do already.
    const bool may_sleep = done->empty() && finished.empty() && !table_.has_kicked();
    do {
      bool must_return = !may_sleep;
      const int error = Select(may_sleep, deadline, &finished, &must_return);
      if (error == EINTR) break;  // Somebody may want to look at what the signal did.
      if (error != 0) return absl::InternalError(absl::StrCat("select: ", std::strerror(error)));
      if (must_return || !finished.empty() || !ended_.empty() || table_.has_kicked()) break;
    } while (SteadyClock::Read() < deadline);  // Else what was reported meant nothing.
    done->Splice(&finished);
    Collect(done);
    return absl::OkStatus();
  }

 private:
  struct Watched {
    uint32_t generation;
    Interest interest;
  };
  struct Report {
    NativeHandle handle;
    uint32_t generation;
    Readiness readiness;
  };

  // The table wants to hear of a handle: remember it, and say what cannot be watched.
  int Watch(NativeHandle handle, uint32_t generation, Interest interest, bool is_known) override {
    struct stat status;
    if (!is_known && ::fstat(static_cast<int>(handle), &status) < 0) return -errno;
    if (!is_known && (S_ISREG(status.st_mode) || S_ISDIR(status.st_mode))) return -EPERM;
    watched_[handle] = {generation, interest};
    waker_->Open();  // Now, as later there may be no descriptor left.
    return 0;
  }
  // And no more. select(2) keeps nothing between two calls, so this cannot fail.
  bool Forget(NativeHandle handle) override {
    watched_.erase(handle);
    return true;
  }

  // One call. 0 or an errno.
  int Select(bool may_sleep, TimePoint deadline, ReadyQueue* finished, bool* must_return) {
    const int waker_fd = may_sleep ? waker_->Open() : waker_->fd();
    const bool can_be_woken = waker_fd >= 0;
    const int last = watched_.empty() ? 0 : static_cast<int>(watched_.rbegin()->first);
    const int size = 1 + std::max(last, waker_fd);
    FdSet readable(size), writable(size);
    if (can_be_woken) readable.Add(waker_fd);
    for (const auto& [handle, watched] : watched_) {
      const int fd = static_cast<int>(handle);
      // select(2) reports states. Where the table asked for changes, it is asked what
      // somebody waits for: a state that nobody takes note of would end each sleep.
      const Interest wanted = watched.interest.edge ? table_.WaitingFor(handle) : watched.interest;
      if (wanted.read) readable.Add(fd);
      if (wanted.write) writable.Add(fd);
    }
    // Rounded up: late, never early. Without a waker in naps, to look whether there is one.
    int milliseconds = 0;
    if (may_sleep) milliseconds = can_be_woken ? MillisecondsUntil(deadline) : NapUntil(deadline);
    timeval timeout = {milliseconds / 1000, milliseconds % 1000 * 1000};
    const int count = ::select(size, readable.get(), writable.get(), nullptr,
                               milliseconds < 0 ? nullptr : &timeout);
    if (count < 0 && errno == EBADF) return LoseClosed();
    if (count < 0) return errno == EINTR && !may_sleep ? 0 : errno;
    if (!can_be_woken) *must_return = true;  // For all we know.
    if (can_be_woken && readable.Has(waker_fd)) {
      waker_->Drain();
      *must_return = true;
    }
    // To report may change `watched_`.
    std::vector<Report> reports;
    for (const auto& [handle, watched] : watched_) {
      const int fd = static_cast<int>(handle);
      const Readiness ready = {.readable = readable.Has(fd), .writable = writable.Has(fd)};
      if (ready.readable || ready.writable) reports.push_back({handle, watched.generation, ready});
    }
    for (const Report& each : reports) {
      table_.Report(each.handle, each.generation, each.readiness, finished);
    }
    return 0;
  }

  // Somebody has closed a descriptor and not told us; select(2) does not say which.
  int LoseClosed() {
    for (auto it = watched_.begin(); it != watched_.end();) {
      const auto [handle, watched] = *it++;
      struct stat status;
      if (::fstat(static_cast<int>(handle), &status) == 0) continue;
      table_.Lose(handle, watched.generation);
      watched_.erase(handle);
    }
    return 0;
  }

  std::map<NativeHandle, Watched> watched_;
  std::shared_ptr<PipeWaker> waker_ = std::make_shared<PipeWaker>();
  ReadinessTable table_{this, &ended_, &pending_};
};

}  // namespace

std::unique_ptr<Poller> MakeSelectPoller() { return std::make_unique<SelectPoller>(); }

}  // namespace weft
// [end]

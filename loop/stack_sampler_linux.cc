// Copyright 2026 The weft Authors.
// SPDX-License-Identifier: Apache-2.0

// By tgkill(2) and backtrace(3). The handler runs on the thread that is stuck and
// only collects addresses; what they are called is found out by the thread that
// asked.
//
// backtrace() is not on the list of signal-safety(7): its first call loads a
// library, so Prepare() makes that call. Later ones allocate nothing; they may wait
// for a lock of the dynamic loader, if the thread was interrupted inside of that.
// So the asker does not wait for ever, and a handler that did not answer in time
// finds that nobody wants its answer any more.

#include <errno.h>
#include <execinfo.h>
#include <semaphore.h>
#include <signal.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#include <atomic>
#include <mutex>

#include "absl/debugging/symbolize.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "weft/loop/stack_sampler.h"

namespace weft::internal {
namespace {

constexpr int kMostFrames = 64;
constexpr int kFramesOfTheHandler = 2;  // Itself, and the kernel's trampoline.

enum class State : int { kIdle, kAsked, kTaking, kTaken };

// One request at a time.
std::mutex asking;
std::atomic<State> state{State::kIdle};
void* frames[kMostFrames];
int frame_count = 0;
sem_t answered;

void OnSignal(int) {
  const int saved_errno = errno;
  State expected = State::kAsked;
  if (state.compare_exchange_strong(expected, State::kTaking)) {
    frame_count = ::backtrace(frames, kMostFrames);
    state.store(State::kTaken);
    ::sem_post(&answered);
  }
  errno = saved_errno;
}

timespec In(absl::Duration patience) {
  timespec now;
  ::clock_gettime(CLOCK_MONOTONIC, &now);
  return absl::ToTimespec(absl::DurationFromTimespec(now) + patience);
}

std::string Words(void* const* addresses, int count) {
  std::string text;
  for (int i = 0; i < count; ++i) {
    // A return address is behind the call; one before it is inside.
    const auto* address = static_cast<const char*>(addresses[i]) - (i == 0 ? 0 : 1);
    char name[1024];
    const bool is_known = absl::Symbolize(address, name, sizeof(name));
    absl::StrAppend(&text, i == 0 ? "" : "\n", absl::StrFormat("%p", addresses[i]), " ",
                    is_known ? name : "(unknown)");
  }
  return text;
}

}  // namespace

uint64_t StackSampler::CurrentThread() { return static_cast<uint64_t>(::syscall(SYS_gettid)); }

absl::Status StackSampler::Prepare(int signal) {
  static const int ready = [] {
    ::backtrace(frames, 1);
    return ::sem_init(&answered, /*pshared=*/0, 0);
  }();
  if (ready != 0) return absl::ErrnoToStatus(errno, "sem_init");
  struct sigaction action = {};
  action.sa_handler = &OnSignal;
  action.sa_flags = SA_RESTART;
  ::sigfillset(&action.sa_mask);
  if (::sigaction(signal, &action, nullptr) != 0) {
    return absl::ErrnoToStatus(errno, absl::StrCat("sigaction for signal ", signal));
  }
  return absl::OkStatus();
}

absl::StatusOr<std::string> StackSampler::Take(uint64_t thread, int signal,
                                               absl::Duration patience) {
  std::lock_guard<std::mutex> lock(asking);
  // The answer to one who did not wait for it.
  if (state.load() == State::kTaken) {
    while (::sem_wait(&answered) != 0) {
    }
    state.store(State::kIdle);
  }
  State expected = State::kIdle;
  if (!state.compare_exchange_strong(expected, State::kAsked)) {
    return absl::UnavailableError("a thread that was asked before is still at it");
  }
  if (::syscall(SYS_tgkill, ::getpid(), static_cast<pid_t>(thread), signal) != 0) {
    const int error = errno;
    state.store(State::kIdle);
    return absl::ErrnoToStatus(error, "tgkill");
  }
  const timespec until = In(patience);
  int waited;
  do {
    waited = ::sem_clockwait(&answered, CLOCK_MONOTONIC, &until);
  } while (waited != 0 && errno == EINTR);
  if (waited != 0) {
    expected = State::kAsked;
    if (state.compare_exchange_strong(expected, State::kIdle)) {
      return absl::DeadlineExceededError("the thread does not take signals");
    }
    if (expected == State::kTaking) {
      // It is in the midst of it, and stays busy until it is not.
      return absl::DeadlineExceededError("the thread is stuck in the dynamic loader");
    }
    while (::sem_wait(&answered) != 0) {
    }
  }
  // Behind the handler's store of it.
  if (state.load() != State::kTaken) return absl::InternalError("nobody answered");
  const int skipped = frame_count > kFramesOfTheHandler ? kFramesOfTheHandler : 0;
  std::string text = Words(frames + skipped, frame_count - skipped);
  state.store(State::kIdle);
  return text;
}

}  // namespace weft::internal

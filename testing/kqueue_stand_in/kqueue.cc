// Copyright 2026 The weft Authors.
// SPDX-License-Identifier: Apache-2.0

// See sys/event.h. A kqueue is an epoll descriptor, and what epoll does not remember is
// in `Kqueues`, under a mutex. Triggering the user event takes no lock, as a signal
// handler may do it: it puts a descriptor that is always readable into the epoll set.

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <sys/epoll.h>
#include <sys/event.h>
#include <sys/eventfd.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/timerfd.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <climits>
#include <cstdint>
#include <cstdlib>
#include <map>
#include <mutex>
#include <vector>

extern "C" {
int __real_close(int fd);
int __real_dup2(int from, int to);
int __wrap_close(int fd);
int __wrap_dup2(int from, int to);
}

namespace {

// Opened before anybody counts descriptors.
const int always_readable = ::eventfd(1, EFD_CLOEXEC | EFD_NONBLOCK);

enum Direction { kRead = 0, kWrite = 1 };

struct Knote {
  bool exists = false;
  bool is_clear = false;
  void* udata = nullptr;
};

struct Watched {
  Knote knotes[2];
};

struct Kqueue {
  std::map<int, Watched> watched;
  int timer_fd = -1;
  bool timer_exists = false;
  std::map<int, int> children;  // By their pidfds.
};

std::mutex mutex;
std::map<int, Kqueue>& Kqueues() {  // By descriptor.
  static auto* const kqueues = new std::map<int, Kqueue>();
  return *kqueues;
}

// Makes the epoll set what the knotes of `fd` say. 0 or an errno.
int Apply(int kq, int fd, const Watched& watched) {
  const Knote& read = watched.knotes[kRead];
  const Knote& write = watched.knotes[kWrite];
  epoll_event event = {};
  event.data.fd = fd;
  if (read.exists) event.events |= EPOLLIN | EPOLLRDHUP | EPOLLPRI;
  if (write.exists) event.events |= EPOLLOUT;
  const bool has_states = (read.exists && !read.is_clear) || (write.exists && !write.is_clear);
  if (!has_states) event.events |= EPOLLET;
  if (!read.exists && !write.exists) {
    ::epoll_ctl(kq, EPOLL_CTL_DEL, fd, nullptr);
    return 0;
  }
  if (::epoll_ctl(kq, EPOLL_CTL_MOD, fd, &event) == 0) return 0;
  if (errno == ENOENT && ::epoll_ctl(kq, EPOLL_CTL_ADD, fd, &event) == 0) return 0;
  return errno == EPERM ? EINVAL : errno;
}

bool IsBrokenPipe(int fd) {
  struct stat status;
  if (::fstat(fd, &status) != 0 || !S_ISFIFO(status.st_mode)) return false;
  pollfd entry = {fd, POLLOUT, 0};
  return ::poll(&entry, 1, 0) == 1 && (entry.revents & POLLERR) != 0;
}

int ChangeDescriptor(int kq, Kqueue* kqueue, const struct kevent& change) {
  const int fd = static_cast<int>(change.ident);
  if (change.ident > INT_MAX || ::fcntl(fd, F_GETFD) < 0) return EBADF;
  const Direction direction = change.filter == EVFILT_READ ? kRead : kWrite;
  Watched& watched = kqueue->watched[fd];
  Knote& knote = watched.knotes[direction];
  int error = 0;
  if ((change.flags & EV_ADD) != 0) {
    if (direction == kWrite && !knote.exists && IsBrokenPipe(fd)) return EPIPE;
    const Knote before = knote;
    // Whether it is of changes is decided when it comes into being.
    knote = {true, before.exists ? before.is_clear : (change.flags & EV_CLEAR) != 0, change.udata};
    error = Apply(kq, fd, watched);
    if (error != 0) knote = before;
  } else if (!knote.exists) {
    error = ENOENT;
  } else if ((change.flags & EV_DELETE) != 0) {
    knote = Knote();
    error = Apply(kq, fd, watched);
  } else if ((change.flags & EV_ENABLE) == 0) {
    error = EINVAL;
  }
  if (!watched.knotes[kRead].exists && !watched.knotes[kWrite].exists) kqueue->watched.erase(fd);
  return error;
}

int ChangeTimer(int kq, Kqueue* kqueue, const struct kevent& change) {
  if (change.ident != 0) return EINVAL;
  itimerspec when = {};
  if ((change.flags & EV_ADD) != 0) {
    if ((change.flags & EV_ONESHOT) == 0) return EINVAL;
    const int64_t milliseconds = std::max<int64_t>(change.data, 1);
    when.it_value.tv_sec = milliseconds / 1000;
    when.it_value.tv_nsec = milliseconds % 1000 * 1'000'000;
    if (kqueue->timer_fd < 0) {
      kqueue->timer_fd = ::timerfd_create(CLOCK_MONOTONIC, TFD_CLOEXEC | TFD_NONBLOCK);
      if (kqueue->timer_fd < 0) return errno;
      epoll_event event = {};
      event.events = EPOLLIN | EPOLLET;
      event.data.fd = kqueue->timer_fd;
      ::epoll_ctl(kq, EPOLL_CTL_ADD, kqueue->timer_fd, &event);
    }
    kqueue->timer_exists = true;
  } else if ((change.flags & EV_DELETE) != 0) {
    if (!kqueue->timer_exists) return ENOENT;
    kqueue->timer_exists = false;
  } else {
    return EINVAL;
  }
  ::timerfd_settime(kqueue->timer_fd, 0, &when, nullptr);
  return 0;
}

int ChangeChild(int kq, Kqueue* kqueue, const struct kevent& change) {
  if ((change.flags & EV_ADD) == 0 || change.fflags != NOTE_EXIT) return EINVAL;
  siginfo_t info = {};
  const auto pid = static_cast<id_t>(change.ident);
  if (::waitid(P_PID, pid, &info, WEXITED | WNOHANG | WNOWAIT) != 0 || info.si_pid != 0) {
    return ESRCH;
  }
  const int pidfd = static_cast<int>(::syscall(SYS_pidfd_open, pid, 0));
  if (pidfd < 0) return errno;
  epoll_event event = {};
  event.events = EPOLLIN;
  event.data.fd = pidfd;
  ::epoll_ctl(kq, EPOLL_CTL_ADD, pidfd, &event);
  kqueue->children[pidfd] = static_cast<int>(pid);
  return 0;
}

// Takes no lock.
int ChangeUser(int kq, const struct kevent& change) {
  if (change.ident != 0) return EINVAL;
  if ((change.fflags & NOTE_TRIGGER) == 0) return 0;
  epoll_event event = {};
  event.events = EPOLLIN;
  event.data.fd = always_readable;
  const int failed = ::epoll_ctl(kq, EPOLL_CTL_ADD, always_readable, &event);
  return failed == 0 || errno == EEXIST ? 0 : errno;
}

int Change(int kq, const struct kevent& change) {
  if (change.filter == EVFILT_USER) return ChangeUser(kq, change);
  const std::scoped_lock lock(mutex);
  const auto found = Kqueues().find(kq);
  if (found == Kqueues().end()) return EBADF;
  switch (change.filter) {
    case EVFILT_READ:
    case EVFILT_WRITE:
      return ChangeDescriptor(kq, &found->second, change);
    case EVFILT_PROC:
      return ChangeChild(kq, &found->second, change);
    case EVFILT_TIMER:
      return ChangeTimer(kq, &found->second, change);
    default:
      return EINVAL;
  }
}

// Writes up to two events for one of epoll; returns the place after them.
struct kevent* Report(int kq, Kqueue* kqueue, const epoll_event& event, struct kevent* out) {
  const int fd = event.data.fd;
  if (fd == always_readable) {
    ::epoll_ctl(kq, EPOLL_CTL_DEL, fd, nullptr);
    EV_SET(out, 0, EVFILT_USER, EV_CLEAR, 0, 0, nullptr);
    return out + 1;
  }
  if (fd == kqueue->timer_fd) {
    if (!kqueue->timer_exists) return out;
    kqueue->timer_exists = false;
    EV_SET(out, 0, EVFILT_TIMER, EV_ONESHOT, 0, 1, nullptr);
    return out + 1;
  }
  if (const auto child = kqueue->children.find(fd); child != kqueue->children.end()) {
    EV_SET(out, child->second, EVFILT_PROC, EV_EOF | EV_ONESHOT, NOTE_EXIT, 0, nullptr);
    kqueue->children.erase(child);
    __real_close(fd);
    return out + 1;
  }
  const auto found = kqueue->watched.find(fd);
  if (found == kqueue->watched.end()) return out;
  const uint32_t events = event.events;
  const uint32_t gone = EPOLLHUP | EPOLLERR;
  const Knote& read = found->second.knotes[kRead];
  const Knote& write = found->second.knotes[kWrite];
  // In this order, so that it is up to whoever is asked to put the reader first.
  if (write.exists && (events & (EPOLLOUT | gone)) != 0) {
    const int flags = (events & gone) != 0 ? EV_EOF : 0;
    EV_SET(out, fd, EVFILT_WRITE, static_cast<uint16_t>(flags), 0, 0, write.udata);
    ++out;
  }
  if (read.exists && (events & (EPOLLIN | EPOLLRDHUP | EPOLLPRI | gone)) != 0) {
    const int flags = ((events & (EPOLLRDHUP | gone)) != 0 ? EV_EOF : 0) |
                      ((events & EPOLLPRI) != 0 ? EV_OOBAND : 0);
    EV_SET(out, fd, EVFILT_READ, static_cast<uint16_t>(flags), 0, 0, read.udata);
    ++out;
  }
  return out;
}

// A descriptor is about to go, and its filters before it.
void OnClose(int fd) {
  const std::scoped_lock lock(mutex);
  for (auto& [kq, kqueue] : Kqueues()) {
    if (kqueue.watched.erase(fd) != 0) ::epoll_ctl(kq, EPOLL_CTL_DEL, fd, nullptr);
  }
  const auto found = Kqueues().find(fd);
  if (found == Kqueues().end()) return;
  if (found->second.timer_fd >= 0) __real_close(found->second.timer_fd);
  for (const auto& [pidfd, pid] : found->second.children) __real_close(pidfd);
  Kqueues().erase(found);
}

}  // namespace

int kqueue() {
  const int kq = ::epoll_create1(EPOLL_CLOEXEC);
  if (kq < 0) return kq;
  const std::scoped_lock lock(mutex);
  Kqueues()[kq] = Kqueue();
  return kq;
}

int kevent(int kq, const struct kevent* changes, int change_count, struct kevent* events,
           int event_count, const struct timespec* timeout) {
  for (int i = 0; i < change_count; ++i) {
    if (const int error = Change(kq, changes[i])) {
      errno = error;
      return -1;
    }
  }
  if (event_count == 0) return 0;

  std::vector<epoll_event> reported(static_cast<size_t>(std::max(event_count / 2, 1)));
  const int count = static_cast<int>(
      ::syscall(SYS_epoll_pwait2, kq, reported.data(), reported.size(), timeout, nullptr, 0));
  if (count < 0) return -1;
  const std::scoped_lock lock(mutex);
  const auto found = Kqueues().find(kq);
  if (found == Kqueues().end()) {
    errno = EBADF;
    return -1;
  }
  struct kevent* out = events;
  for (int i = 0; i < count; ++i)
    out = Report(kq, &found->second, reported[static_cast<size_t>(i)], out);
  return static_cast<int>(out - events);
}

// All that is linked here closes by these.

int __wrap_close(int fd) {
  OnClose(fd);
  return __real_close(fd);
}

int __wrap_dup2(int from, int to) {
  if (from != to) OnClose(to);
  return __real_dup2(from, to);
}

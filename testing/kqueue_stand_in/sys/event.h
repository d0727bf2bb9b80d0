// Copyright 2026 The weft Authors.
// SPDX-License-Identifier: Apache-2.0

// A stand-in for the <sys/event.h> of macOS and the BSDs, for tests on Linux: so much
// of kqueue(2) as weft's poller uses, over epoll(7), after the manual pages. It is no
// kqueue for programs.
//
// What it has: EVFILT_READ and EVFILT_WRITE of whatever epoll can watch, as states and
// as changes (EV_CLEAR); EVFILT_USER with ident 0 and NOTE_TRIGGER, from any thread
// and from signal handlers; EVFILT_TIMER with ident 0, EV_ONESHOT and milliseconds;
// EVFILT_PROC with NOTE_EXIT, of children, which is ESRCH for a zombie, as on macOS.
// Changes fail as there: the first that does ends the call, with errno, as nobody gives
// room for EV_ERROR events. Closing a descriptor deletes its filters, which is why
// whatever uses this is linked with --wrap=close and --wrap=dup2. To write to a pipe that nobody
// reads is refused with EPIPE, as by FreeBSD.
//
// What is other: a filter with EV_CLEAR may report once too often, when the other
// direction of its descriptor changes; `data` is always 0, and EV_EOF comes without an
// errno in `fflags`.

#ifndef WEFT_TESTING_KQUEUE_STAND_IN_SYS_EVENT_H_
#define WEFT_TESTING_KQUEUE_STAND_IN_SYS_EVENT_H_

#include <stdint.h>
#include <time.h>

struct kevent {
  uintptr_t ident;
  int16_t filter;
  uint16_t flags;
  uint32_t fflags;
  intptr_t data;
  void* udata;
};

#define EVFILT_READ (-1)
#define EVFILT_WRITE (-2)
#define EVFILT_PROC (-5)
#define EVFILT_TIMER (-7)
#define EVFILT_USER (-10)

#define EV_ADD 0x0001
#define EV_DELETE 0x0002
#define EV_ENABLE 0x0004
#define EV_ONESHOT 0x0010
#define EV_CLEAR 0x0020
#define EV_OOBAND 0x2000
#define EV_ERROR 0x4000
#define EV_EOF 0x8000

#define NOTE_TRIGGER 0x01000000u
#define NOTE_EXIT 0x80000000u

#define EV_SET(event, i, filt, flgs, ffl, dat, ud) \
  do {                                             \
    struct kevent* weft_event = (event);           \
    weft_event->ident = static_cast<uintptr_t>(i); \
    weft_event->filter = (filt);                   \
    weft_event->flags = (flgs);                    \
    weft_event->fflags = (ffl);                    \
    weft_event->data = static_cast<intptr_t>(dat); \
    weft_event->udata = (ud);                      \
  } while (0)

int kqueue();
int kevent(int kq, const struct kevent* changes, int change_count, struct kevent* events,
           int event_count, const struct timespec* timeout);

#endif  // WEFT_TESTING_KQUEUE_STAND_IN_SYS_EVENT_H_

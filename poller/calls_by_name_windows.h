// Copyright 2026 The weft Authors.
// SPDX-License-Identifier: Apache-2.0

#ifndef WEFT_POLLER_CALLS_BY_NAME_WINDOWS_H_
#define WEFT_POLLER_CALLS_BY_NAME_WINDOWS_H_

#include <winsock2.h>
// Behind it.
#include <mswsock.h>
#include <windows.h>

namespace weft::internal {

// Calls of Windows that no library has, so that they are asked for by name.

// What a poll of AFD asks and answers.
struct AfdPoll {
  LARGE_INTEGER timeout;
  ULONG count;
  ULONG is_exclusive;
  struct {
    HANDLE handle;
    ULONG events;
    LONG status;  // What has befallen the socket; not all of Wine's errors are elsewhere.
  } socket;
};

inline constexpr LONG kStatusPending = 0x103;

// Waits until `socket` is readable, or writable; an end or an error is both. `*poll` and
// `*overlapped`, whose packet comes to the socket's port, are the kernel's until it has
// ended. Returns an NTSTATUS, `kStatusPending` for the most part.
LONG StartAfdPoll(HANDLE socket, bool to_write, AfdPoll* poll, OVERLAPPED* overlapped);

// Gives a handle that has a port another one; false if it has none, or the system cannot.
bool ReplacePort(HANDLE handle, HANDLE port);

// AcceptEx() and ConnectEx(), as the provider of a socket's kind has them; of all there
// are, as nobody installs others any more. Null if it has none.
LPFN_ACCEPTEX AcceptExOf(SOCKET socket);
LPFN_CONNECTEX ConnectExOf(SOCKET socket);

}  // namespace weft::internal

#endif  // WEFT_POLLER_CALLS_BY_NAME_WINDOWS_H_

// Copyright 2026 The weft Authors.
// SPDX-License-Identifier: Apache-2.0

#ifndef WEFT_POLLER_IOCP_POLLER_H_
#define WEFT_POLLER_IOCP_POLLER_H_

#include <memory>

#include "weft/poller/poller.h"

namespace weft {

// The poller over I/O completion ports: Windows 10 or later, and Wine. In the registry as
// "iocp", and the only one there.
//
// Reads and writes of pipes and files (kRead, kWrite, kRecvLent with kAnyFile) take handles
// that were opened for overlapped I/O (FILE_FLAG_OVERLAPPED), files only with an offset;
// others are -EINVAL, a console is -EPERM. Waiting until something is readable or writable
// works with sockets; another handle is -EPERM.
//
// A handle belongs to the loop that has first used it, until it is closed.
std::unique_ptr<Poller> MakeIocpPoller();

}  // namespace weft

#endif  // WEFT_POLLER_IOCP_POLLER_H_

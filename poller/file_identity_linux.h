// Copyright 2026 The weft Authors.
// SPDX-License-Identifier: Apache-2.0

#ifndef WEFT_POLLER_FILE_IDENTITY_LINUX_H_
#define WEFT_POLLER_FILE_IDENTITY_LINUX_H_

#include <cstdint>

#include "weft/poller/native_handle.h"

namespace weft::internal {

// Says which file `handle` stands for, as far as that can be told; 0 if for none.
uint64_t FileOf(NativeHandle handle);

// Whether one can wait for such a file, as epoll has it: 0, and which file it is; or a
// negated errno.
int CheckWatchable(NativeHandle handle, uint64_t* file);

}  // namespace weft::internal

#endif  // WEFT_POLLER_FILE_IDENTITY_LINUX_H_

// Copyright 2026 The weft Authors.
// SPDX-License-Identifier: Apache-2.0

#ifndef WEFT_POLLER_WOULD_BLOCK_H_
#define WEFT_POLLER_WOULD_BLOCK_H_

#include <cstdint>
#include <limits>

namespace weft::internal {

// In the place of a result: what cannot be done without waiting, as the kernel's EAGAIN,
// or EINPROGRESS of a connect. Apart from every errno, because EAGAIN can also be an
// outcome: that of connecting to a Unix socket whose backlog is full, of which no
// readiness is ever reported (unix(7)).
inline constexpr int64_t kWouldBlock = std::numeric_limits<int64_t>::min();

}  // namespace weft::internal

#endif  // WEFT_POLLER_WOULD_BLOCK_H_

// Copyright 2026 The weft Authors.
// SPDX-License-Identifier: Apache-2.0

#ifndef WEFT_POLLER_BUILTIN_POLLERS_H_
#define WEFT_POLLER_BUILTIN_POLLERS_H_

#include <vector>

#include "weft/poller/poller_registry.h"

namespace weft::internal {

// The backends that were built for this platform. Each platform has its own file,
// make_poller_<platform>.cc, and the build takes one of them whole: a list that
// is called, and no objects that register themselves, because a linker leaves
// those out of a static library.
std::vector<PollerBackend> BuiltinPollers();

}  // namespace weft::internal

#endif  // WEFT_POLLER_BUILTIN_POLLERS_H_

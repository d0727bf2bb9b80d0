// Copyright 2026 The weft Authors.
// SPDX-License-Identifier: Apache-2.0

#ifndef WEFT_TESTING_ALLOCATION_COUNTER_H_
#define WEFT_TESTING_ALLOCATION_COUNTER_H_

#include <cstdint>

#include "absl/base/config.h"

namespace weft {

// How many times `operator new` was called, of whatever kind, by all threads of
// the program since it began. Whoever links this has it replaced: a test that asks
// is a program of its own.
//
//   const int64_t before = AllocationsSoFar();
//   ... the steady state ...
//   EXPECT_EQ(AllocationsSoFar(), before);
//
// Threads: any.
int64_t AllocationsSoFar();

// Whether the steady state allocates nothing in this build: under the sanitizers the
// free lists are off, so that they see every use after the end.
#if defined(ABSL_HAVE_ADDRESS_SANITIZER) || defined(ABSL_HAVE_THREAD_SANITIZER)
inline constexpr bool kHasFreeLists = false;
#else
inline constexpr bool kHasFreeLists = true;
#endif

}  // namespace weft

#endif  // WEFT_TESTING_ALLOCATION_COUNTER_H_

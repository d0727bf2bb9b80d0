// Copyright 2026 The weft Authors.
// SPDX-License-Identifier: Apache-2.0

// Reports of ThreadSanitizer that are known to be wrong, for --config=tsan, which links
// this into everything (.bazelrc).
//
// Where a thread waits in absl::Mutex, it is woken by a write to memory that it has
// mapped itself; how one thread learns of the memory of the other is hidden from the
// sanitizer, as the mutex is described to it as a whole.
//
// OpenSSL is not built with the sanitizer, and counts references to a session that
// several threads use with atomics that the sanitizer does not see: between one thread's
// last look at it and the other's free() nothing seems to lie. What these libraries
// read, write and free themselves is left out; what they call back is not.

extern "C" const char* __tsan_default_suppressions() {
  return "race:absl::*::synchronization_internal::Waiter::Post\n"
         "called_from_lib:libcrypto.so\n"
         "called_from_lib:libssl.so\n";
}

// Copyright 2026 The weft Authors.
// SPDX-License-Identifier: Apache-2.0

// With MinGW a thread's thread_local memory hangs on a key of winpthreads (libgcc's emutls.c),
// and goes when the keys' destructors run. Those of C++ objects run later, by a TLS callback
// of the program, and find memory that has been freed, or, if they ask for a variable by its
// name, one that is new.
//
// The destructors of keys run in the order in which the keys were made. So ours is made before
// anybody has touched a thread_local variable, and its destructor finds all of them. If
// somebody was earlier after all (a DLL with an emutls of its own), the hooks find new
// variables, with nothing in them: what the thread had kept is lost, and no harm is done.
//
// Who asks later, in a destructor of C++, sets the key anew, and winpthreads runs its
// destructor once more.

#include <pthread.h>

#include "absl/base/macros.h"
#include "weft/core/thread_exit.h"

namespace weft::internal {
namespace {

pthread_key_t MakeKey() {
  pthread_key_t key;
  const int error = pthread_key_create(&key, [](void*) { RunThreadExitHooks(); });
  ABSL_HARDENING_ASSERT(error == 0);
  return key;
}

pthread_key_t Key() {
  static const pthread_key_t key = MakeKey();
  return key;
}

// 101 is the first priority that is not the compiler's own.
[[gnu::constructor(101)]] void MakeKeyBeforeAll() { Key(); }

}  // namespace

bool WatchThisThread() {
  static constexpr char kSet = 0;  // Any address: of a null pointer nobody is told.
  return pthread_setspecific(Key(), &kSet) == 0;
}

}  // namespace weft::internal

// Copyright 2026 The weft Authors.
// SPDX-License-Identifier: Apache-2.0

#ifndef WEFT_CORE_THREAD_EXIT_H_
#define WEFT_CORE_THREAD_EXIT_H_

namespace weft::internal {

// ThreadExitHook
//
// What a thread does at its end with what it keeps in thread_local variables: gives it
// back. It stands beside them, and is as trivially destructible as they should be, so that
// all may be used at any time of a thread's life.
//
//   constinit thread_local Cache cache;
//   constinit thread_local ThreadExitHook empty_cache([] { cache.Clear(); });
//
// A destructor of the variable itself will not do: MinGW frees thread_local memory before it
// runs the destructors of what is there. How a system tells of the end is in
// thread_exit_<platform>.cc.
//
// Python: nothing there; its threads keep nothing.
class ThreadExitHook {
 public:
  // `run` must not throw. It may register any hook, also its own.
  explicit constexpr ThreadExitHook(void (*run)()) : run_(run) {}
  ThreadExitHook(const ThreadExitHook&) = delete;

  // Has `run` called once, when this thread ends, and its thread_local memory is still there;
  // the last one that was registered comes first. The second time it does nothing.
  //
  // False if the thread has ended so far that nobody would call it, which destructors of
  // thread_local objects may see: what is there then is to keep nothing.
  bool Register();

 private:
  friend void RunThreadExitHooks();

  void (*const run_)();
  ThreadExitHook* next_ = nullptr;
  bool is_registered_ = false;
};

// -- Implementation details.

// Has RunThreadExitHooks() called when this thread ends. False if it is too late.
bool WatchThisThread();
void RunThreadExitHooks();

}  // namespace weft::internal

#endif  // WEFT_CORE_THREAD_EXIT_H_

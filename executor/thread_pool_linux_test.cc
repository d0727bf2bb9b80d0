// Copyright 2026 The weft Authors.
// SPDX-License-Identifier: Apache-2.0

// What can only be seen, or provoked, with the help of Linux.

#include <pthread.h>
#include <sys/resource.h>
#include <unistd.h>

#include <cstdint>
#include <fstream>
#include <latch>
#include <string>

#include "gtest/gtest.h"
#include "weft/core/errors.h"
#include "weft/executor/thread_pool.h"

namespace weft {
namespace {

std::string NameOfFirstThread(const std::string& prefix) {
  std::string name;
  {
    ThreadPoolOptions options;
    options.thread_name_prefix = prefix;
    ThreadPool pool(options);
    pool.Submit([&name] {
      char buffer[16] = "";
      ::pthread_getname_np(::pthread_self(), buffer, sizeof(buffer));
      name = buffer;
    });
  }
  return name;
}

TEST(ThreadPoolLinuxTest, NamesItsThreads) { EXPECT_EQ(NameOfFirstThread("files"), "files_0"); }

TEST(ThreadPoolLinuxTest, KeepsTheNumberOfALongName) {
  EXPECT_EQ(NameOfFirstThread("compression-workers"), "compression-w_0");
}

uint64_t AddressSpaceInUse() {
  uint64_t pages = 0;
  std::ifstream("/proc/self/statm") >> pages;
  return pages * static_cast<uint64_t>(::sysconf(_SC_PAGESIZE));
}

// While one lives there is no room for the stack of another thread.
class NoMoreThreads {
 public:
  NoMoreThreads() {
    ::getrlimit(RLIMIT_AS, &before_);
    rlimit limit = before_;
    limit.rlim_cur = AddressSpaceInUse() + (1 << 20);
    ::setrlimit(RLIMIT_AS, &limit);
    // A stack that nobody has used, so that glibc has none of this size to
    // give again.
    ::pthread_attr_t attributes;
    ::pthread_getattr_default_np(&attributes);
    ::pthread_attr_getstacksize(&attributes, &stack_size_before_);
    ::pthread_attr_setstacksize(&attributes, 1 << 30);
    ::pthread_setattr_default_np(&attributes);
    ::pthread_attr_destroy(&attributes);
  }
  ~NoMoreThreads() {
    ::pthread_attr_t attributes;
    ::pthread_getattr_default_np(&attributes);
    ::pthread_attr_setstacksize(&attributes, stack_size_before_);
    ::pthread_setattr_default_np(&attributes);
    ::pthread_attr_destroy(&attributes);
    ::setrlimit(RLIMIT_AS, &before_);
  }

 private:
  rlimit before_;
  size_t stack_size_before_ = 0;
};

// The sanitizers map terabytes, and die if they cannot map more for a thread.
bool IsSanitized() { return AddressSpaceInUse() > uint64_t{1} << 40; }

TEST(ThreadPoolLinuxTest, SubmitThrowsIfThereIsNoThreadAtAll) {
  if (IsSanitized()) GTEST_SKIP() << "a sanitizer cannot do with less address space";
  ThreadPool pool;
  bool ran = false;

  std::string error;
  {
    NoMoreThreads no_more_threads;
    try {
      pool.Submit([&ran] { ran = true; });
    } catch (const RuntimeError& e) {
      error = e.what();
    }
  }

  EXPECT_EQ(error, "can't start new thread");
  EXPECT_EQ(pool.queue_depth(), 0);
  pool.Shutdown({});
  EXPECT_FALSE(ran);
}

TEST(ThreadPoolLinuxTest, AJobWaitsForTheThreadsThatThereAre) {
  if (IsSanitized()) GTEST_SKIP() << "a sanitizer cannot do with less address space";
  std::latch first_began{1};
  std::latch first_may_end{1};
  std::latch second_ran{1};
  ThreadPool pool;
  pool.Submit([&] {
    first_began.count_down();
    first_may_end.wait();
  });
  first_began.wait();

  {
    NoMoreThreads no_more_threads;
    pool.Submit([&] { second_ran.count_down(); });
  }
  EXPECT_EQ(pool.queue_depth(), 1);
  first_may_end.count_down();

  second_ran.wait();
}

}  // namespace
}  // namespace weft

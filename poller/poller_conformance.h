// Copyright 2026 The weft Authors.
// SPDX-License-Identifier: Apache-2.0

#ifndef WEFT_POLLER_POLLER_CONFORMANCE_H_
#define WEFT_POLLER_POLLER_CONFORMANCE_H_

#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "gtest/gtest.h"
#include "weft/poller/poller.h"
#include "weft/poller/socket_api.h"

namespace weft {

// What every poller promises, as tests. A backend's own test is this:
//
//   #include "weft/poller/poller_conformance.h"
//
//   INSTANTIATE_TEST_SUITE_P(Epoll, PollerConformanceTest, ::testing::Values(&MakeEpollPoller));
//
// Nothing here depends on whether the kernel reports readiness or completion: an
// operation that is done at once and one that is given back count alike.
//
// A factory that returns null says that this system has not what its backend needs:
// the tests are skipped.
using PollerFactory = std::unique_ptr<Poller> (*)();

// An operation that remembers that it ran. One that was started by the fixture is
// cancelled, and waited for, when it goes out of scope.
struct TestOperation final : Operation {
  TestOperation();
  explicit TestOperation(std::vector<Operation*>* log) : TestOperation() { order = log; }
  ~TestOperation();

  int runs = 0;                              // Given back so many times.
  std::vector<Operation*>* order = nullptr;  // Where each run is written down.
  Poller* poller = nullptr;                  // Where it was started.
};

class PollerConformanceTest : public ::testing::TestWithParam<PollerFactory> {
 protected:
  struct Pair {
    NativeHandle a;
    NativeHandle b;
  };

  PollerConformanceTest();
  ~PollerConformanceTest() override;

  void SetUp() override;

  // Retires what is left, and expects that no descriptor is.
  void TearDown() override;

  // Starts `op`; if that is the end of it, runs it.
  void Start(TestOperation* op);

  // One round of a loop: collects, waits until `deadline`, runs. Returns how many
  // ran.
  int Round(TimePoint deadline = TimePoint::InfinitePast());

  // Rounds until `op` has run, and returns its result. A test that would wait for
  // ever fails instead, and gets INT64_MIN.
  int64_t RunUntilDone(TestOperation* op);

  // Both: for operations of which only the outcome counts.
  int64_t Do(TestOperation* op);

  // Starts `op` and cancels it at that moment: see poller_conformance_cancel.cc.
  int64_t CancelAt(int moment, TestOperation* op, const std::function<void()>& enable);

  // Rounds until nothing has been given back for a while.
  void RunUntilQuiet();

  // Receives exactly `size` bytes, or what there is until the end.
  std::string ReceiveAll(NativeHandle handle, size_t size);

  // Sends all of it.
  void SendAll(NativeHandle handle, std::string_view bytes);

  // Retires `handle`, and returns the result.
  int64_t Retire(NativeHandle handle);

  // Two connected sockets: Unix or whatever the system has for it, or TCP over
  // loopback. The test retires them, or `TearDown()` does.
  Pair StreamPair();
  Pair TcpPair();
  NativeHandle Listener(SockAddr* address);  // TCP, on some port of loopback.
  NativeHandle Datagram(SockAddr* address);  // UDP, likewise.
  NativeHandle Own(NativeHandle handle);     // Retired at the end.
  void Disown(NativeHandle handle);

  // Without the poller, and without waiting: the outside world.
  static int64_t SendNow(NativeHandle handle, std::string_view bytes);
  static std::string ReceiveNow(NativeHandle handle, size_t size);
  static void CloseNow(NativeHandle handle);
  static SockAddr Loopback();  // 127.0.0.1, port 0.
  static int OpenHandleCount();
  static TimePoint Now();
  static TimePoint In(int milliseconds);
  static absl::Duration CpuTime();  // Of this thread.

  Poller& poller() { return *poller_; }

  std::unique_ptr<Poller> poller_;
  SocketApi* const sockets_ = SystemSocketApi();
  SlabPool pool_;
  std::vector<Operation*> order_;  // What has run, for operations made with it.

 private:
  int handles_before_;
  std::vector<NativeHandle> owned_;
};

}  // namespace weft

#endif  // WEFT_POLLER_POLLER_CONFORMANCE_H_

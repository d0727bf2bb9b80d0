// Copyright 2026 The weft Authors.
// SPDX-License-Identifier: Apache-2.0

#ifndef WEFT_POLLER_FAULT_INJECTION_H_
#define WEFT_POLLER_FAULT_INJECTION_H_

#include <cstddef>
#include <cstdint>
#include <initializer_list>
#include <memory>
#include <random>
#include <set>
#include <unordered_set>
#include <utility>

#include "weft/poller/poller_wrapper.h"
#include "weft/poller/socket_api.h"

namespace weft {

// Faults
//
// Decides when something goes wrong, and how: by chance, but by the same chance for the
// same seed; or at one place alone, to go through all places one after the other.
//
//   Faults faults = Faults::Random(seed, /*one_in=*/20);
//   FaultyPoller poller(&faults);
//   FaultySocketApi sockets(&faults);
//   RunOptions options;
//   options.environment.poller = &poller;
//   options.environment.socket_api = &sockets;
//   weft::Run(Program(), options);
//
// Each operation that is started and each call of the socket API is a place: it may
// fail with one of the errors that it can fail with, or do less than it was asked to
// (short reads and writes). Nothing else is changed: an operation that fails did
// nothing. Sockets are opened by the system all the same, so a test can count
// descriptors.
//
// Threads: belongs to the loop's thread.
class Faults {
 public:
  // One place in so many, at random.
  static Faults Random(uint32_t seed, uint32_t one_in) {
    Faults faults(seed);
    faults.one_in_ = one_in;
    return faults;
  }

  // Only the place of that number, counted from 0: the error of number `which`. `missed()`
  // tells whether the program came so far, and had so many errors to choose from.
  static Faults At(uint64_t place, uint32_t which) {
    Faults faults(1);
    faults.place_ = place;
    faults.which_ = which;
    return faults;
  }

  // What happens at this place: one of `errors` (negated), or 0 for nothing.
  int Next(std::initializer_list<int> errors) {
    const uint64_t place = places_++;
    if (!enabled_ || errors.size() == 0) return 0;
    if (one_in_ != 0) {
      if (random_() % one_in_ != 0) return 0;
      return Count(errors.begin()[random_() % errors.size()]);
    }
    if (place != place_) return 0;
    was_reached_ = true;
    if (which_ >= errors.size()) return 0;
    return Count(errors.begin()[which_]);
  }

  // How much is done of what is asked: all, or by chance less, but something.
  size_t Shorten(size_t size) {
    if (!enabled_ || one_in_ == 0 || size < 2 || random_() % 4 != 0) return size;
    return 1 + random_() % size;
  }

  bool Chance(uint32_t one_in) { return enabled_ && one_in_ != 0 && random_() % one_in == 0; }

  // Off: nothing goes wrong from now on, as in a test's own part.
  void set_enabled(bool enabled) { enabled_ = enabled; }

  uint64_t places() const { return places_; }  // How many there were.
  uint64_t count() const { return count_; }    // How many faults.
  bool was_reached() const { return was_reached_; }
  const std::set<int>& seen() const { return seen_; }  // Which errors.

 private:
  explicit Faults(uint32_t seed) : random_(seed) {}

  int Count(int error) {
    ++count_;
    seen_.insert(error);
    return -error;
  }

  std::mt19937 random_;
  uint32_t one_in_ = 0;
  uint64_t place_ = 0;
  uint32_t which_ = 0;
  bool enabled_ = true;
  bool was_reached_ = false;
  uint64_t places_ = 0;
  uint64_t count_ = 0;
  std::set<int> seen_;
};

// A poller whose operations go wrong; see Faults.
class FaultyPoller final : public PollerWrapper {
 public:
  explicit FaultyPoller(Faults* faults, std::unique_ptr<Poller> inner = nullptr)
      : PollerWrapper(std::move(inner)), faults_(faults) {}

  StartResult Start(Operation* op) override;
  void Cancel(Operation* op) override;
  absl::Status Wait(TimePoint deadline, ReadyQueue* done) override;

 private:
  int NextError(const Operation& op);

  Faults* const faults_;
  // Those that failed without having been started: the inner poller does not know
  // them.
  std::unordered_set<Operation*> failed_;
};

// A socket API whose calls go wrong; see Faults.
class FaultySocketApi final : public SocketApi {
 public:
  explicit FaultySocketApi(Faults* faults, SocketApi* inner = SystemSocketApi())
      : faults_(faults), inner_(inner) {}

  NativeHandle Open(SocketDomain domain, SocketType type, int protocol) override;
  int OpenPair(SocketType type, NativeHandle pair[2]) override;
  int Bind(NativeHandle socket, const SockAddr& address) override;
  int Listen(NativeHandle socket, int backlog) override;
  int GetSockName(NativeHandle socket, SockAddr* address) override;
  int GetPeerName(NativeHandle socket, SockAddr* address) override;
  int SetOption(NativeHandle socket, SocketOption option, int value) override;
  int GetOption(NativeHandle socket, SocketOption option, int* value) override;
  int SetRawOption(NativeHandle socket, int level, int name, const void* value,
                   size_t size) override;
  int GetRawOption(NativeHandle socket, int level, int name, void* value, size_t* size) override;
  int JoinGroup(NativeHandle socket, const SockAddr& group, uint32_t interface) override;
  int LeaveGroup(NativeHandle socket, const SockAddr& group, uint32_t interface) override;
  int ReceiveMany(NativeHandle socket, DatagramSlot* slots, int count) override;
  int SendMany(NativeHandle socket, const DatagramSlot* slots, int count) override;
  int64_t SendSegments(NativeHandle socket, const void* data, size_t size, size_t segment_size,
                       const SockAddr& address) override;
  int64_t SendFile(NativeHandle socket, NativeHandle file, int64_t offset, size_t count) override;
  int Shutdown(NativeHandle socket, ShutdownHow how) override;
  int Close(NativeHandle socket) override { return inner_->Close(socket); }

 private:
  Faults* const faults_;
  SocketApi* const inner_;
};

}  // namespace weft

#endif  // WEFT_POLLER_FAULT_INJECTION_H_

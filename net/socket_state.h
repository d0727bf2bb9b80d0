// Copyright 2026 The weft Authors.
// SPDX-License-Identifier: Apache-2.0

#ifndef WEFT_NET_SOCKET_STATE_H_
#define WEFT_NET_SOCKET_STATE_H_

#include <cstdint>
#include <string>
#include <utility>

#include "weft/core/block_pool.h"
#include "weft/core/intrusive_ptr.h"
#include "weft/core/scheduler.h"
#include "weft/loop/event_loop.h"
#include "weft/net/socket_address.h"
#include "weft/poller/native_handle.h"
#include "weft/poller/socket_api.h"

namespace weft::internal {

// Told when the kernel holds nothing of a handle any more.
struct ClosedCallback {
  void (*function)(void*) = nullptr;
  void* argument = nullptr;

  void operator()() const {
    if (function != nullptr) function(argument);
  }
};

// Closes `handle`, which belongs to the loop behind `core`, by way of its poller,
// and then calls `closed`. The request owns itself, so nobody has to wait.
//
// `closed` runs as an operation's runnable does. Once the loop is closed nobody
// runs those, so it runs in here; so it does if the loop is gone.
void CloseHandle(SchedulerCore* core, SocketApi* api, NativeHandle handle,
                 ClosedCallback closed = ClosedCallback());

// The same, but leaves the handle open: for whoever owns it from now on.
void ForgetHandle(SchedulerCore* core, NativeHandle handle);

// What a `Socket` refers to, and the operations that wait on it: the handle, and
// all that is needed to use and to close it. It may outlive its loop.
//
// Threads: belongs to the loop's thread; the count is not atomic.
class SocketState : public PooledObject {
 public:
  SocketState(EventLoop& loop, NativeHandle handle)
      : handle_(handle), core_(loop.core()), api_(&loop.socket_api()) {}
  SocketState(const SocketState&) = delete;
  ~SocketState() { Close(); }

  void AddRef() { ++refs_; }
  void Release() {
    if (--refs_ == 0) delete this;
  }

  SchedulerCore* core() const { return core_.get(); }
  SocketApi* api() const { return api_; }
  // REQUIRES: the loop is not destroyed.
  EventLoop& loop() const { return *static_cast<EventLoop*>(core_->owner); }

  NativeHandle handle() const { return handle_; }
  bool is_open() const { return handle_ != kInvalidHandle; }

  // Where it is connected to, as far as that is known.
  const SocketAddress& peer() const { return peer_; }
  void set_peer(SocketAddress peer) { peer_ = std::move(peer); }

  // Does nothing, and calls nothing, the second time.
  void Close(ClosedCallback closed = ClosedCallback()) {
    if (!is_open()) return;
    CloseHandle(core_.get(), api_, std::exchange(handle_, kInvalidHandle), closed);
  }
  // Gives the handle up without closing it.
  NativeHandle TakeHandle() {
    if (is_open()) ForgetHandle(core_.get(), handle_);
    return std::exchange(handle_, kInvalidHandle);
  }

  // For messages: " 127.0.0.1:80" of the peer, with `preposition`; by the handle if
  // there is none.
  std::string Describe(std::string_view what, std::string_view preposition) const;

 private:
  uint32_t refs_ = 0;
  NativeHandle handle_;
  IntrusivePtr<SchedulerCore> core_;
  SocketApi* api_;
  SocketAddress peer_;
};

}  // namespace weft::internal

#endif  // WEFT_NET_SOCKET_STATE_H_

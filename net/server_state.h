// Copyright 2026 The weft Authors.
// SPDX-License-Identifier: Apache-2.0

#ifndef WEFT_NET_SERVER_STATE_H_
#define WEFT_NET_SERVER_STATE_H_

#include <coroutine>
#include <cstddef>
#include <functional>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "absl/functional/any_invocable.h"
#include "absl/status/status.h"
#include "weft/core/block_pool.h"
#include "weft/core/callback.h"
#include "weft/core/context.h"
#include "weft/core/coro.h"
#include "weft/core/future.h"
#include "weft/core/intrusive_list.h"
#include "weft/core/intrusive_ptr.h"
#include "weft/core/observer.h"
#include "weft/core/task.h"
#include "weft/core/waiter.h"
#include "weft/loop/event_loop.h"
#include "weft/net/connection.h"
#include "weft/net/socket.h"
#include "weft/net/socket_file.h"
#include "weft/net/stream_state.h"
#include "weft/net/tls_provider.h"
#include "weft/poller/operation.h"
#include "weft/sync/waiter_list.h"

namespace weft::internal {

// What a server calls for each connection. `mutable` closures may be used: one
// closure serves all.
using ConnectionHandler = absl::AnyInvocable<Coro<void>(StreamReader, StreamWriter)>;

class ServerState;

// A socket that listens, and the operation that waits there for the next
// connection.
class Listener final {
 public:
  Listener(ServerState* server, Socket socket, SocketAddress address)
      : server_(server), socket_(std::move(socket)), address_(std::move(address)) {}
  Listener(const Listener&) = delete;
  ~Listener() { DropHeld(); }

  const SocketAddress& address() const { return address_; }
  Socket& socket() { return socket_; }
  // The file to be removed when it is closed.
  void OwnFile() { file_ = IdentifySocketFile(address_.path()); }

  // Accepts, until it is closed. Does nothing if it does already.
  void Start();
  // Whether somebody was accepted who waits for room.
  bool is_holding() const { return is_holding_; }
  void Close();

 private:
  struct AcceptOperation final : Operation {
    explicit AcceptOperation(Listener* owner);
    Listener* const listener;
  };

  void OnAccept();
  void AcceptMore();
  bool HandleResult();
  void Pause(int error);
  void Discard(int64_t accepted);
  void DropHeld() {
    if (std::exchange(is_holding_, false)) Discard(accept_.result);
  }

  ServerState* const server_;
  Socket socket_;
  const SocketAddress address_;
  FileIdentity file_;
  // A server lives as long as one of its listeners waits.
  IntrusivePtr<ServerState> keep_;
  AcceptOperation accept_{this};
  SockAddr peer_;
  bool is_holding_ = false;    // What `accept_` has, of `peer_`, waits for room.
  bool is_unhandled_ = false;  // HandleResult() is still to come.
  TimerHandle retry_;
};

// How a server does TLS.
struct ServerTls {
  std::shared_ptr<const TlsFactory> factory;
  StartTlsOptions options;
  std::function<void(const absl::Status&)> on_error;
};

// What a `Server` refers to, its listeners and its connections.
//
// Threads: belongs to the loop's thread; the count is not atomic.
class ServerState final : public ConnectionOwner {
 public:
  // A handler that runs, in its task; or the handshake before it. It goes when the task has
  // ended, and sees to what the task has left.
  class Handling final : public ListNode, public PooledObject, private Observing {
   public:
    enum class Stage : uint8_t { kHandshake, kHandler };

    Handling(ServerState* server, IntrusivePtr<StreamState> stream, Stage stage)
        : server_(server), stream_(std::move(stream)), stage_(stage) {}
    ~Handling();

    // Makes the server know it. REQUIRES: `task` has not run yet.
    void Start(FutureStateRef task);
    FutureState* task() const { return observer_.target(); }
    // It calls the handler, or reports that it has failed: there is nothing to be cancelled.
    bool is_ending_handshake() const;

   private:
    void Hold() override {}
    void LetGo() override { delete this; }
    void OnTargetDone(Observer*) override;
    void OnTargetDropped(Observer*) override {}

    const IntrusivePtr<ServerState> server_;
    const IntrusivePtr<StreamState> stream_;
    const Stage stage_;
    Observer observer_;
  };

  struct Settings {
    int backlog;
    size_t limit;
    size_t max_connections;
    std::unique_ptr<ServerTls> tls;  // Null: plain.
  };

  ServerState(EventLoop& loop, ConnectionHandler handler, Settings settings);
  ServerState(const ServerState&) = delete;

  void AddRef() { ++refs_; }
  void Release() {
    if (--refs_ == 0) delete this;
  }

  SchedulerCore* core() const { return core_.get(); }
  EventLoop& loop() const { return *static_cast<EventLoop*>(core_->owner); }
  const ServerTls* tls() const { return settings_.tls.get(); }

  Listener& AddListener(Socket socket, SocketAddress address);
  const std::vector<std::unique_ptr<Listener>>& listeners() const { return listeners_; }

  bool is_serving() const { return is_serving_; }
  bool is_closed() const { return is_closed_; }
  bool is_gone() const { return is_closed_ && connection_count_ == 0; }
  size_t connection_count() const { return connection_count_; }
  bool is_full() const { return connection_count_ >= settings_.max_connections; }

  absl::Status StartServing();
  void Close();
  void CloseClients();
  void AbortClients();

  // Calls the handler of one client, and starts what it returns.
  void StartHandler(const IntrusivePtr<StreamState>& stream);
  // How many.
  size_t CancelHandlers();
  bool is_done() const { return is_gone() && handlers_.empty(); }
  WaiterList& finishers() { return finishers_; }

  WaiterList& closers() { return closers_; }
  Future<void>& forever() { return forever_; }

  // `handle` was accepted.
  void OnConnected(NativeHandle handle, const SockAddr& peer);
  void OnConnectionLost(StreamState* stream) override;
  void Report(std::string message, std::exception_ptr error, std::string socket);

 private:
  ~ServerState() = default;

  template <class F>
  void ForEachClient(F what);
  void StartHandling(const IntrusivePtr<StreamState>& stream, Handling::Stage stage,
                     Coro<void> coro);
  void OnHandlerFailed(StreamState* stream, std::exception_ptr error);

  uint32_t refs_ = 0;
  IntrusivePtr<SchedulerCore> core_;
  ContextRef context_;  // Of whoever started it, for the handlers.
  ConnectionHandler handler_;
  const Settings settings_;
  std::vector<std::unique_ptr<Listener>> listeners_;
  bool is_serving_ = false;
  bool is_closed_ = false;
  size_t connection_count_ = 0;
  List<StreamState> clients_;
  List<Handling> handlers_;
  WaiterList closers_;
  WaiterList finishers_;
  Future<void> forever_;  // While a task serves for ever.
};

class [[nodiscard]] WaitServerClosedAwaiter final : public Waiter {
 public:
  explicit WaitServerClosedAwaiter(IntrusivePtr<ServerState> server) : server_(std::move(server)) {}
  WaitServerClosedAwaiter(WaitServerClosedAwaiter&& other) noexcept
      : server_(std::move(other.server_)) {}

  bool await_ready() const { return server_->is_gone(); }
  template <class Promise>
  void await_suspend(std::coroutine_handle<Promise> handle) {
    server_->closers().Wait(this, handle);
  }
  void await_resume() {
    Unlink();
    EndOrThrow();
  }
  Outcome<void> await_outcome() {
    Unlink();
    return EndAsOutcome();
  }

 private:
  IntrusivePtr<ServerState> server_;
};

Coro<void> ServeForever(IntrusivePtr<ServerState> server);
Coro<void> WaitServerDone(IntrusivePtr<ServerState> server);

}  // namespace weft::internal

#endif  // WEFT_NET_SERVER_STATE_H_

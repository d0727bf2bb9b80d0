// Copyright 2026 The weft Authors.
// SPDX-License-Identifier: Apache-2.0

#include "weft/net/server_state.h"

#include <cerrno>
#include <exception>

#include "absl/strings/str_cat.h"
#include "weft/core/errors.h"
#include "weft/core/exception_context.h"
#include "weft/core/no_throw.h"
#include "weft/core/task.h"
#include "weft/net/errno_status.h"

namespace weft::internal {
namespace {

// As many as asyncio accepts in a row, by its default backlog.
constexpr int kAcceptsInARow = 100;

// How long accepting pauses when the system is out of something.
constexpr absl::Duration kPause = absl::Seconds(1);

// The handshake of one client, and what comes after it.
Coro<void> SecureAndServe(IntrusivePtr<ServerState> server, IntrusivePtr<StreamState> stream) {
  const ServerTls& tls = *server->tls();
  absl::Status begun = stream->StartTls(tls.factory, tls.options);
  absl::Status secured = co_await HandshakeAwaiter(stream, std::move(begun));
  if (secured.ok()) {
    server->StartHandler(stream);
    co_return;
  }
  stream->Close();
  if (tls.on_error) tls.on_error(secured);
}

// Errors of one connection that was still in the queue, or of the network that it
// came by: accept(2) says to go on as if it had not been there.
bool IsAboutOneConnection(int error) {
  switch (error) {
    case EAGAIN:
    case ECONNABORTED:
    case EHOSTUNREACH:
    case EINTR:
    case ENETDOWN:
    case ENETUNREACH:
    case ENOPROTOOPT:
    case EPERM:  // A firewall's no.
    case EPROTO:
    case ETIMEDOUT:
      return true;
    default:
      return false;
  }
}

bool IsOutOfResource(int error) {
  return error == EMFILE || error == ENFILE || error == ENOBUFS || error == ENOMEM;
}

}  // namespace

// -- Listener.

Listener::AcceptOperation::AcceptOperation(Listener* owner)
    : Operation([](Runnable* runnable) {
        static_cast<AcceptOperation*>(runnable)->listener->OnAccept();
      }),
      listener(owner) {}

void Listener::Start() {
  if (keep_ || (!is_holding_ && server_->is_full())) return;
  keep_ = IntrusivePtr<ServerState>(server_);
  is_unhandled_ = true;
  if (!std::exchange(is_holding_, false)) {
    accept_.PrepareAccept(socket_.handle(), &peer_);
    if (server_->loop().poller().Start(&accept_) == StartResult::kPending) return;
  }
  // Somebody is there already. As with asyncio he is served from a callback of his own: the
  // handler may be a function that uses what StartServer() has yet to return.
  server_->core()->ready.PushBack(&accept_);
}

void Listener::Close() {
  RemoveSocketFile(address_.path(), std::exchange(file_, FileIdentity()));
  retry_.Cancel();
  DropHeld();
  socket_.Close();
  // Of a kernel that completes, the end is still to come.
  if (accept_.state == Operation::State::kPending) return;
  accept_.Unlink();
  if (std::exchange(is_unhandled_, false)) Discard(accept_.result);
  const IntrusivePtr<ServerState> last = std::move(keep_);
}

// Closes what nobody wants any more.
void Listener::Discard(int64_t accepted) {
  if (accepted >= 0) socket_.state()->api()->Close(static_cast<NativeHandle>(accepted));
}

void Listener::OnAccept() {
  const IntrusivePtr<ServerState> alive = keep_;
  if (HandleResult()) AcceptMore();
}

void Listener::AcceptMore() {
  for (int accepted = 0;; ++accepted) {
    if (server_->is_full()) {
      keep_ = IntrusivePtr<ServerState>();  // Until one has gone.
      return;
    }
    is_unhandled_ = true;
    accept_.PrepareAccept(socket_.handle(), &peer_);
    if (server_->loop().poller().Start(&accept_) == StartResult::kPending) return;
    if (accepted >= kAcceptsInARow) return server_->core()->ready.PushBack(&accept_);
    if (!HandleResult()) return;
  }
}

// False if this is not to go on: it is closed, holds one for whom there is no room, or
// pauses.
bool Listener::HandleResult() {
  const int64_t result = accept_.result;
  is_unhandled_ = false;
  if (server_->is_closed() || result == -ECANCELED || result == -EBADF) {
    // Only a kernel that completes delivers after the end.
    Discard(result);
    keep_ = IntrusivePtr<ServerState>();
    return false;
  }
  is_holding_ = result >= 0 && server_->is_full();
  if (is_holding_) {  // Another listener was faster.
    keep_ = IntrusivePtr<ServerState>();
    return false;
  }
  if (result >= 0) {
    server_->OnConnected(static_cast<NativeHandle>(result), peer_);
    return !server_->is_closed();
  }
  if (IsAboutOneConnection(static_cast<int>(-result))) return true;
  Pause(static_cast<int>(-result));
  return false;
}

void Listener::Pause(int error) {
  const absl::Status status = ErrnoStatus(-error, absl::StrCat("accept on ", address_.ToString()));
  server_->Report(
      IsOutOfResource(error) ? "socket.accept() out of system resource" : "socket.accept() failed",
      std::make_exception_ptr(RuntimeError(std::string(status.message()))),
      absl::StrCat("listening on ", address_.ToString()));
  if (server_->is_closed()) return;  // By the exception handler.
  retry_ = server_->loop().CallLater(kPause, [server = keep_, this] {
    if (!server->is_closed()) AcceptMore();
  });
}

// -- ServerState.

void ServerState::Handling::Start(FutureStateRef task) {
  observer_.set_target(std::move(task));
  observer_.Start(this);
  observer_.Weaken();
  server_->handlers_.PushBack(this);
}

ServerState::Handling::~Handling() {
  Unlink();
  if (server_->handlers_.empty()) server_->finishers_.WakeAll();
}

bool ServerState::Handling::is_ending_handshake() const {
  return stage_ == Stage::kHandshake && static_cast<TaskState*>(task())->is_running();
}

void ServerState::Handling::OnTargetDone(Observer*) {
  if (task()->cancelled()) return stream_->Close();
  if (!task()->has_error()) return;
  task()->MarkRetrieved();
  server_->OnHandlerFailed(stream_.get(), task()->error());
}

void ServerState::OnHandlerFailed(StreamState* stream, std::exception_ptr error) {
  stream->Close();
  Report("Unhandled exception in client_connected_cb", std::move(error),
         stream->socket().state()->Describe("connection", "from"));
}

void ServerState::StartHandler(const IntrusivePtr<StreamState>& stream) {
  try {
    StartHandling(stream, Handling::Stage::kHandler,
                  handler_(StreamReader(stream), StreamWriter(stream)));
  } catch (...) {  // It is a plain function that returns a coroutine.
    if (IsHandlingKeyboardInterrupt()) core_->owner->Interrupt();
    OnHandlerFailed(stream.get(), std::current_exception());
  }
}

void ServerState::StartHandling(const IntrusivePtr<StreamState>& stream, Handling::Stage stage,
                                Coro<void> coro) {
  std::unique_ptr<Handling> handling(new Handling(this, stream, stage));
  Task<void> task = StartTask(loop(), std::move(coro), SourceLocation());
  handling.release()->Start(FutureStateRef(task.state()));
}

// Each at the time of the call, whatever becomes of the others by it.
size_t ServerState::CancelHandlers() {
  std::vector<FutureRef> tasks;
  for (Handling* one = handlers_.front(); one != nullptr; one = handlers_.Next(one)) {
    if (one->task()->done() || one->is_ending_handshake()) continue;
    tasks.emplace_back(FutureStateRef(one->task()));
  }
  for (FutureRef& task : tasks) task.Cancel();
  return tasks.size();
}

ServerState::ServerState(EventLoop& loop, ConnectionHandler handler, Settings settings)
    : core_(loop.core()),
      context_(loop.current_context()),
      handler_(std::move(handler)),
      settings_(std::move(settings)) {}

Listener& ServerState::AddListener(Socket socket, SocketAddress address) {
  listeners_.push_back(std::make_unique<Listener>(this, std::move(socket), std::move(address)));
  return *listeners_.back();
}

absl::Status ServerState::StartServing() {
  if (is_closed_) throw RuntimeError("server is closed");
  if (is_serving_) return absl::OkStatus();
  for (const auto& listener : listeners_) {
    absl::Status listening = listener->socket().Listen(settings_.backlog);
    if (!listening.ok()) return listening;
  }
  is_serving_ = true;
  for (const auto& listener : listeners_) listener->Start();
  return absl::OkStatus();
}

void ServerState::Close() {
  if (std::exchange(is_closed_, true)) return;
  const IntrusivePtr<ServerState> alive(this);
  is_serving_ = false;
  for (const auto& listener : listeners_) listener->Close();
  if (forever_) forever_.Cancel();
  if (is_gone()) closers_.WakeAll();
}

// Each client at the time of the call, whatever becomes of the others by it.
template <class F>
void ServerState::ForEachClient(F what) {
  std::vector<IntrusivePtr<StreamState>> clients;
  clients.reserve(connection_count_);
  for (StreamState* client = clients_.front(); client != nullptr; client = clients_.Next(client)) {
    clients.emplace_back(client);
  }
  for (const IntrusivePtr<StreamState>& client : clients) what(client.get());
}

void ServerState::CloseClients() {
  ForEachClient([](StreamState* client) { client->Close(); });
}

void ServerState::AbortClients() {
  ForEachClient([](StreamState* client) { client->Abort(); });
}

void ServerState::OnConnected(NativeHandle handle, const SockAddr& peer) {
  IntrusivePtr<StreamState> stream;
  ContextRef its_context = context_;  // The handler may be a function that changes it.
  ContextRef* const context = std::exchange(core_->current_context, &its_context);
  try {
    IntrusivePtr<SocketState> socket(new SocketState(loop(), handle));
    socket->set_peer(SocketAddress::FromNative(peer));
    stream = IntrusivePtr<StreamState>(new StreamState(Socket(socket), settings_.limit));
    clients_.PushBack(stream.get());
    stream->set_owner(this);
    ++connection_count_;
    AddRef();  // Until the connection is lost.
    if (tls() == nullptr) {
      StartHandler(stream);
    } else {
      StartHandling(stream, Handling::Stage::kHandshake,
                    SecureAndServe(IntrusivePtr<ServerState>(this), stream));
    }
  } catch (...) {
    if (stream) stream->Abort();
    Report("Accepting a connection failed", std::current_exception(),
           SocketAddress::FromNative(peer).ToString());
  }
  core_->current_context = context;
}

void ServerState::OnConnectionLost(StreamState* stream) {
  stream->ListNode::Unlink();
  const bool was_full = is_full();
  --connection_count_;
  if (is_gone()) {
    closers_.WakeAll();
  } else if (was_full && is_serving_ && !core_->closed) {
    // First those who have been accepted.
    for (const auto& listener : listeners_) {
      if (listener->is_holding()) listener->Start();
    }
    for (const auto& listener : listeners_) listener->Start();
  }
  Release();
}

void ServerState::Report(std::string message, std::exception_ptr error, std::string socket) {
  ExceptionContext context(std::move(message));
  context.exception = std::move(error);
  context.socket = std::move(socket);
  if (core_->owner != nullptr) core_->owner->HandleException(std::move(context));
}

Coro<void> WaitServerDone(IntrusivePtr<ServerState> server) {
  while (!server->is_done()) {
    if (!server->is_gone()) {
      co_await WaitServerClosedAwaiter(server);
    } else {
      Outcome<void> woken = co_await ListWait(&server->finishers(), "Server.WaitDone");
      woken.value();
    }
  }
}

Coro<void> ServeForever(IntrusivePtr<ServerState> server) {
  if (server->forever()) throw RuntimeError("server is already being awaited on serve_forever()");
  if (server->is_closed()) throw RuntimeError("server is closed");
  absl::Status started = server->StartServing();
  if (!started.ok()) throw RuntimeError(started.ToString());
  server->forever() = server->loop().CreateFuture<void>();
  Outcome<void> outcome = co_await NoThrow(Future<void>(server->forever()));
  server->forever() = Future<void>();
  server->Close();
  if (!server->is_gone()) co_await NoThrow(WaitServerClosedAwaiter(server));
  outcome.value();  // Throws: there is no other end.
}

}  // namespace weft::internal

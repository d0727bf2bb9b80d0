// Copyright 2026 The weft Authors.
// SPDX-License-Identifier: Apache-2.0

#include "weft/net/socket.h"

#include <cerrno>

#include "absl/strings/str_cat.h"
#include "weft/core/errors.h"
#include "weft/loop/event_loop.h"
#include "weft/net/errno_status.h"

namespace weft {
namespace internal {
namespace {

// How many times a send goes on at once before the others have their turn.
constexpr int kSendsInARow = 16;

absl::StatusOr<size_t> CountOr(const SocketState* socket, int64_t result, std::string_view what,
                               std::string_view preposition) {
  if (result >= 0) return static_cast<size_t>(result);
  return ErrnoStatus(result, socket == nullptr ? what : socket->Describe(what, preposition));
}

std::string Describe(const SocketState* socket, std::string_view what, const SockAddr& address) {
  const SocketAddress to = SocketAddress::FromNative(address);
  if (to.is_none()) return socket == nullptr ? std::string(what) : socket->Describe(what, "to");
  return absl::StrCat(what, " to ", to.ToString());
}

}  // namespace

absl::StatusOr<Socket> AcceptAwaiter::Take() {
  if (result < 0) {
    std::string tried = "accept";
    if (socket_ && socket_->is_open()) {
      SockAddr local;
      socket_->api()->GetSockName(socket_->handle(), &local);
      tried = absl::StrCat("accept on ", SocketAddress::FromNative(local).ToString());
    }
    return ErrnoStatus(result, tried);
  }
  IntrusivePtr<SocketState> accepted(
      new SocketState(socket_->loop(), static_cast<NativeHandle>(result)));
  is_taken_ = true;
  accepted->set_peer(SocketAddress::FromNative(peer_));
  return Socket(std::move(accepted));
}

absl::Status ConnectAwaiter::Take() {
  if (result < 0) return ErrnoStatus(result, Describe(socket_.get(), "connect", to_));
  socket_->set_peer(SocketAddress::FromNative(to_));
  return absl::OkStatus();
}

absl::StatusOr<size_t> RecvAwaiter::Take() {
  return CountOr(socket_.get(), result, "receive", "from");
}

void RecvFromAwaiter::Prepare() {
  piece_ = {into_.data(), into_.size()};
  PrepareRecvMsg(socket_->handle(), &piece_, 1, &from_, flags_);
}

absl::StatusOr<Received> RecvFromAwaiter::Take() {
  absl::StatusOr<size_t> count = CountOr(socket_.get(), result, "receive", "from");
  if (!count.ok()) return count.status();
  return Received(*count, SocketAddress::FromNative(from_));
}

absl::StatusOr<size_t> SendAwaiter::Take() { return CountOr(socket_.get(), result, "send", "to"); }

void SendToAwaiter::Prepare() {
  piece_ = {const_cast<char*>(data_.data()), data_.size()};
  PrepareSendMsg(socket_->handle(), &piece_, 1, to_.length == 0 ? nullptr : &to_, flags_);
}

absl::StatusOr<size_t> SendToAwaiter::Take() {
  if (result >= 0) return static_cast<size_t>(result);
  return ErrnoStatus(result, Describe(socket_.get(), "send", to_));
}

StartResult SendAllAwaiter::StartRest() {
  PrepareSend(socket_->handle(), rest_.data(), rest_.size());
  return poller().Start(this);
}

// True if there is more to send.
bool SendAllAwaiter::ConsumeResult() {
  if (result < 0) return false;
  rest_.remove_prefix(static_cast<size_t>(result));
  return !rest_.empty();
}

bool SendAllAwaiter::Begin(std::coroutine_handle<> handle) {
  while (true) {
    if (StartRest() == StartResult::kPending) {
      Suspend(handle);
      return true;
    }
    if (!SpendBudget()) {
      Suspend(handle);
      task_->scheduler()->ready.PushBack(this);
      return true;
    }
    if (!ConsumeResult()) return false;
  }
}

void SendAllAwaiter::OnDone(Runnable* runnable) {
  auto* self = static_cast<SendAllAwaiter*>(runnable);
  for (int sends = 0; self->ConsumeResult(); ++sends) {
    if (self->is_cancelling_ || !self->socket_->is_open()) {
      self->result = -ECANCELED;
      break;
    }
    if (self->StartRest() == StartResult::kPending) return;
    if (sends >= kSendsInARow) {
      self->task_->scheduler()->ready.PushBack(self);
      return;
    }
  }
  self->WakeTask();
}

Outcome<absl::Status> SendAllAwaiter::await_outcome() {
  Outcome<absl::Status> outcome;
  if (EndedByCancel(rest_.empty())) {
    outcome.SetCancelled(task_->cancelled_error());
  } else if (is_misused_) {
    try {
      ThrowOtherLoop();
    } catch (...) {
      outcome.SetCurrentException();
    }
  } else {
    outcome.Emplace(Take());
  }
  return outcome;
}

absl::Status SendAllAwaiter::Take() {
  return CountOr(socket_.get(), result, "send", "to").status();
}

}  // namespace internal

using internal::IntrusivePtr;
using internal::SocketState;

absl::StatusOr<Socket> Socket::Open(SocketDomain domain, SocketType type, int protocol) {
  EventLoop& loop = GetRunningLoop();
  const NativeHandle handle = loop.socket_api().Open(domain, type, protocol);
  if (handle < 0) return ErrnoStatus(handle, "open a socket");
  return Socket(IntrusivePtr<SocketState>(new SocketState(loop, handle)));
}

absl::StatusOr<std::pair<Socket, Socket>> Socket::Pair(SocketType type) {
  EventLoop& loop = GetRunningLoop();
  NativeHandle pair[2];
  if (int result = loop.socket_api().OpenPair(type, pair); result < 0) {
    return ErrnoStatus(result, "open a pair of sockets");
  }
  return std::make_pair(Socket(IntrusivePtr<SocketState>(new SocketState(loop, pair[0]))),
                        Socket(IntrusivePtr<SocketState>(new SocketState(loop, pair[1]))));
}

Socket Socket::Adopt(NativeHandle handle) {
  return Socket(IntrusivePtr<SocketState>(new SocketState(GetRunningLoop(), handle)));
}

// `result`, of a call that is known by `tried`.
absl::Status Socket::ToStatus(int64_t result, std::string_view tried) const {
  if (result >= 0) return absl::OkStatus();
  return ErrnoStatus(result, state_ ? state_->Describe(tried, "to") : std::string(tried));
}

absl::Status Socket::Bind(const SocketAddress& address) {
  const int64_t result = is_open() ? state_->api()->Bind(handle(), address.ToNative()) : -EBADF;
  if (result >= 0) return absl::OkStatus();
  return ErrnoStatus(result, absl::StrCat("bind to ", address.ToString()));
}

absl::Status Socket::Listen(int backlog) {
  const int64_t result = is_open() ? state_->api()->Listen(handle(), backlog) : -EBADF;
  if (result >= 0) return absl::OkStatus();
  absl::StatusOr<SocketAddress> local = LocalAddress();
  return ErrnoStatus(
      result, local.ok() ? absl::StrCat("listen on ", local->ToString()) : std::string("listen"));
}

absl::Status Socket::Shutdown(ShutdownHow how) {
  return ToStatus(is_open() ? state_->api()->Shutdown(handle(), how) : -EBADF,
                  "shut down the connection");
}

absl::Status Socket::SetOption(SocketOption option, int value) {
  return ToStatus(is_open() ? state_->api()->SetOption(handle(), option, value) : -EBADF,
                  "set an option of the connection");
}

absl::StatusOr<int> Socket::GetOption(SocketOption option) const {
  int value = 0;
  absl::Status status =
      ToStatus(is_open() ? state_->api()->GetOption(handle(), option, &value) : -EBADF,
               "get an option of the connection");
  if (!status.ok()) return status;
  return value;
}

absl::Status Socket::SetKeepAlive(const KeepAlive& keep_alive) {
  absl::Status status = SetOption(socket_option::kKeepAlive, true);
  if (keep_alive.idle != absl::ZeroDuration()) {
    status.Update(SetOption(socket_option::kKeepAliveIdle, keep_alive.idle));
  }
  if (keep_alive.interval != absl::ZeroDuration()) {
    status.Update(SetOption(socket_option::kKeepAliveInterval, keep_alive.interval));
  }
  if (keep_alive.count != 0) {
    status.Update(SetOption(socket_option::kKeepAliveCount, keep_alive.count));
  }
  return status;
}

absl::Status Socket::SetRawOption(int level, int name, const void* value, size_t size) {
  return ToStatus(
      is_open() ? state_->api()->SetRawOption(handle(), level, name, value, size) : -EBADF,
      "set an option of the connection");
}

absl::Status Socket::GetRawOption(int level, int name, void* value, size_t* size) const {
  return ToStatus(
      is_open() ? state_->api()->GetRawOption(handle(), level, name, value, size) : -EBADF,
      "get an option of the connection");
}

absl::StatusOr<SocketAddress> Socket::LocalAddress() const {
  SockAddr native;
  const int64_t result = is_open() ? state_->api()->GetSockName(handle(), &native) : -EBADF;
  if (result < 0) return ErrnoStatus(result, "get the address of a socket");
  return SocketAddress::FromNative(native);
}

absl::StatusOr<SocketAddress> Socket::PeerAddress() const {
  if (state_ && !state_->peer().is_none()) return state_->peer();
  SockAddr native;
  const int64_t result = is_open() ? state_->api()->GetPeerName(handle(), &native) : -EBADF;
  if (result < 0) return ErrnoStatus(result, "get the address of a socket's peer");
  state_->set_peer(SocketAddress::FromNative(native));
  return state_->peer();
}

NativeHandle Socket::Release() { return state_ ? state_->TakeHandle() : kInvalidHandle; }

namespace internal {

absl::Status SharePort(Socket& socket) {
  absl::Status set = socket.SetOption(SocketOption::kReusePort, 1);
  if (ErrnoOf(set) != ENOPROTOOPT && ErrnoOf(set) != EOPNOTSUPP) return set;
  return absl::UnimplementedError(absl::StrCat("this system cannot share a port: ", set.message()));
}

}  // namespace internal
}  // namespace weft

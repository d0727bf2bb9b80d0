// Copyright 2026 The weft Authors.
// SPDX-License-Identifier: Apache-2.0

#ifndef WEFT_NET_SOCKET_H_
#define WEFT_NET_SOCKET_H_

#include <cstddef>
#include <cstdint>
#include <string_view>
#include <type_traits>
#include <utility>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/types/span.h"
#include "weft/core/intrusive_ptr.h"
#include "weft/net/socket_address.h"
#include "weft/net/socket_awaiter.h"
#include "weft/net/socket_options.h"
#include "weft/net/socket_state.h"
#include "weft/poller/native_handle.h"
#include "weft/poller/sock_addr.h"
#include "weft/poller/socket_api.h"

namespace weft {

class Socket;

// A datagram that has come: so many bytes, from there.
struct Received {
  Received() {}
  Received(size_t bytes, SocketAddress sender) : size(bytes), from(std::move(sender)) {}

  size_t size = 0;
  SocketAddress from;
  bool is_truncated = false;  // There was more of it. Told by Datagram::ReceiveInto().
};

namespace internal {

class [[nodiscard]] AcceptAwaiter final : public SocketAwaiter<AcceptAwaiter> {
 public:
  explicit AcceptAwaiter(IntrusivePtr<SocketState> socket) : SocketAwaiter(std::move(socket)) {}
  AcceptAwaiter(AcceptAwaiter&& other) noexcept : AcceptAwaiter(std::move(other.socket_)) {}
  // One that has come, and that nobody will take.
  ~AcceptAwaiter() {
    if (ABSL_PREDICT_FALSE(has_socket())) socket_->api()->Close(static_cast<NativeHandle>(result));
  }

  void Prepare() { PrepareAccept(socket_->handle(), &peer_); }
  bool Stays() const { return true; }
  absl::StatusOr<Socket> Take();

 private:
  bool has_socket() const { return state == State::kDone && !is_taken_ && result >= 0; }

  SockAddr peer_;
  bool is_taken_ = false;
};

class [[nodiscard]] ConnectAwaiter final : public SocketAwaiter<ConnectAwaiter> {
 public:
  ConnectAwaiter(IntrusivePtr<SocketState> socket, const SocketAddress& to)
      : SocketAwaiter(std::move(socket)), to_(to.ToNative()) {}
  ConnectAwaiter(ConnectAwaiter&& other) noexcept
      : SocketAwaiter(std::move(other.socket_)), to_(other.to_) {}

  void Prepare() { PrepareConnect(socket_->handle(), &to_); }
  bool Stays() const { return false; }
  absl::Status Take();

 private:
  SockAddr to_;
};

class [[nodiscard]] RecvAwaiter final : public SocketAwaiter<RecvAwaiter> {
 public:
  RecvAwaiter(IntrusivePtr<SocketState> socket, absl::Span<char> into, int flags)
      : SocketAwaiter(std::move(socket)), into_(into), flags_(flags) {}
  RecvAwaiter(RecvAwaiter&& other) noexcept
      : RecvAwaiter(std::move(other.socket_), other.into_, other.flags_) {}

  void Prepare() { PrepareRecv(socket_->handle(), into_.data(), into_.size(), flags_); }
  bool Stays() const { return true; }
  absl::StatusOr<size_t> Take();

 private:
  absl::Span<char> into_;
  int flags_;
};

class [[nodiscard]] RecvFromAwaiter final : public SocketAwaiter<RecvFromAwaiter> {
 public:
  RecvFromAwaiter(IntrusivePtr<SocketState> socket, absl::Span<char> into, int flags)
      : SocketAwaiter(std::move(socket)), into_(into), flags_(flags) {}
  RecvFromAwaiter(RecvFromAwaiter&& other) noexcept
      : RecvFromAwaiter(std::move(other.socket_), other.into_, other.flags_) {}

  void Prepare();
  bool Stays() const { return true; }
  absl::StatusOr<Received> Take();

 private:
  absl::Span<char> into_;
  int flags_;
  Buffer piece_ = {};
  SockAddr from_;
};

class [[nodiscard]] SendAwaiter final : public SocketAwaiter<SendAwaiter> {
 public:
  SendAwaiter(IntrusivePtr<SocketState> socket, std::string_view data, int flags)
      : SocketAwaiter(std::move(socket)), data_(data), flags_(flags) {}
  SendAwaiter(SendAwaiter&& other) noexcept
      : SendAwaiter(std::move(other.socket_), other.data_, other.flags_) {}

  void Prepare() { PrepareSend(socket_->handle(), data_.data(), data_.size(), flags_); }
  bool Stays() const { return true; }
  absl::StatusOr<size_t> Take();

 private:
  std::string_view data_;
  int flags_;
};

class [[nodiscard]] SendToAwaiter final : public SocketAwaiter<SendToAwaiter> {
 public:
  SendToAwaiter(IntrusivePtr<SocketState> socket, std::string_view data, const SockAddr& to,
                int flags)
      : SocketAwaiter(std::move(socket)), data_(data), to_(to), flags_(flags) {}
  SendToAwaiter(SendToAwaiter&& other) noexcept
      : SendToAwaiter(std::move(other.socket_), other.data_, other.to_, other.flags_) {}

  void Prepare();
  bool Stays() const { return true; }
  absl::StatusOr<size_t> Take();

 private:
  std::string_view data_;
  SockAddr to_;
  int flags_;
  Buffer piece_ = {};
};

// Sends until all has been taken: one wait, whatever the number of pieces.
class [[nodiscard]] SendAllAwaiter final : public SocketOperation {
 public:
  SendAllAwaiter(IntrusivePtr<SocketState> socket, std::string_view data)
      : SocketOperation(&OnDone, std::move(socket)), rest_(data) {}
  SendAllAwaiter(SendAllAwaiter&& other) noexcept
      : SendAllAwaiter(std::move(other.socket_), other.rest_) {}

  bool await_ready() const { return rest_.empty(); }
  template <class Promise>
  bool await_suspend(std::coroutine_handle<Promise> handle) {
    if (ABSL_PREDICT_FALSE(!CheckUsable(handle.promise().task))) return false;
    return Begin(handle);
  }
  absl::Status await_resume() {
    if (ABSL_PREDICT_FALSE(EndedByCancel(rest_.empty()))) {
      std::rethrow_exception(task_->cancelled_error());
    }
    if (ABSL_PREDICT_FALSE(is_misused_)) ThrowOtherLoop();
    return Take();
  }
  Outcome<absl::Status> await_outcome();

 private:
  static void OnDone(Runnable* runnable);
  bool Begin(std::coroutine_handle<> handle);
  StartResult StartRest();
  bool ConsumeResult();
  absl::Status Take();

  std::string_view rest_;
};

}  // namespace internal

// Socket
//
// Owns a socket of the running loop, and waits on it for the kernel to do what it
// is asked, without a buffer in between. What most programs want is above it:
// `OpenConnection()`, `StartServer()` and their streams.
//
//   absl::StatusOr<Socket> socket = Socket::Open(SocketDomain::kInet, SocketType::kStream);
//   if (!socket.ok()) co_return socket.status();
//   absl::Status connected = co_await socket->Connect(address);
//   ...
//   absl::StatusOr<size_t> received = co_await socket->Recv(absl::MakeSpan(buffer));
//
// What waits takes views: buffers and data are the caller's, and have to stay
// until the await is over. Several tasks may wait on one socket; in each
// direction they are served in the order in which they came.
//
// A wait that is cancelled throws CancelledError, and nothing has been lost: what
// the kernel had delivered by then is returned all the same, and the cancellation
// comes at the next await. (SendAll() may have sent a part.) After a cancelled
// Connect() the socket is good for nothing but to be closed.
//
// Closing, which the destructor does, ends what waits with CANCELLED. A socket may
// outlive its loop; it is of no use then, and closed as ever.
//
// Errors: the kernel's, as `ErrnoStatus()` has them, with the peer's address where
// it is known; EBADF once closed. RuntimeError in a task of another loop.
// Threads: belongs to the loop's thread.
// Python: a socket with loop.sock_recv(), loop.sock_sendall(), ...
class Socket {
 public:
  Socket() = default;  // None; all that waits is -EBADF.

  // A new socket, non-blocking and not inherited by child processes.
  // Errors: RuntimeError "no running event loop".
  static absl::StatusOr<Socket> Open(SocketDomain domain, SocketType type = SocketType::kStream,
                                     int protocol = 0);

  // Two Unix sockets that are connected to each other.
  static absl::StatusOr<std::pair<Socket, Socket>> Pair(SocketType type = SocketType::kStream);

  // Takes over a socket that is non-blocking already.
  static Socket Adopt(NativeHandle handle);

  Socket(Socket&&) noexcept = default;
  Socket& operator=(Socket&& other) noexcept {
    if (this != &other) {
      Close();
      state_ = std::move(other.state_);
    }
    return *this;
  }
  ~Socket() { Close(); }

  bool is_open() const { return state_ && state_->is_open(); }
  NativeHandle handle() const { return state_ ? state_->handle() : kInvalidHandle; }

  // -- Without waiting.

  absl::Status Bind(const SocketAddress& address);
  absl::Status Listen(int backlog = 100);
  absl::Status Shutdown(ShutdownHow how);

  // See socket_options.h: the value has the type that it means.
  template <class T>
  absl::Status SetOption(const OptionKey<T>& key, std::type_identity_t<T> value) {
    absl::StatusOr<int> native = internal::OptionToNative(key, value);
    if (!native.ok()) return native.status();
    return SetOption(key.option, *native);
  }
  template <class T>
  absl::StatusOr<T> GetOption(const OptionKey<T>& key) const {
    absl::StatusOr<int> native = GetOption(key.option);
    if (!native.ok()) return native.status();
    return internal::OptionFromNative(key, *native);
  }
  // Turns keep-alive on, with these times.
  absl::Status SetKeepAlive(const KeepAlive& keep_alive);

  // The same by the kernel's own units.
  absl::Status SetOption(SocketOption option, int value);
  absl::StatusOr<int> GetOption(SocketOption option) const;
  // By the platform's own numbers.
  absl::Status SetRawOption(int level, int name, const void* value, size_t size);
  absl::Status GetRawOption(int level, int name, void* value, size_t* size) const;

  // Where it is bound to.
  absl::StatusOr<SocketAddress> LocalAddress() const;
  // Where it is connected to. Remembered, so that it is known after a reset too.
  absl::StatusOr<SocketAddress> PeerAddress() const;

  // Gives the handle back to the kernel, and ends what waits. Does nothing the
  // second time.
  void Close() {
    if (state_) state_->Close();
  }

  // Gives the handle up without closing it. REQUIRES: nobody waits on it.
  NativeHandle Release();

  // -- Awaitables.

  // Of StatusOr<Socket>: the next connection.
  internal::AcceptAwaiter Accept() { return internal::AcceptAwaiter(state_); }

  // Of Status.
  internal::ConnectAwaiter Connect(const SocketAddress& to) {
    return internal::ConnectAwaiter(state_, to);
  }

  // Of StatusOr<size_t>: how many bytes came, up to `into.size()`; 0 at the end of
  // the stream, or for an empty datagram.
  internal::RecvAwaiter Recv(absl::Span<char> into, int flags = 0) {
    return internal::RecvAwaiter(state_, into, flags);
  }

  // Of StatusOr<Received>.
  internal::RecvFromAwaiter RecvFrom(absl::Span<char> into, int flags = 0) {
    return internal::RecvFromAwaiter(state_, into, flags);
  }

  // Of StatusOr<size_t>: how many bytes were taken, which may be fewer than there
  // are.
  internal::SendAwaiter Send(std::string_view data, int flags = 0) {
    return internal::SendAwaiter(state_, data, flags);
  }

  // Of Status: when all has been taken.
  internal::SendAllAwaiter SendAll(std::string_view data) {
    return internal::SendAllAwaiter(state_, data);
  }

  // Of StatusOr<size_t>: one datagram.
  internal::SendToAwaiter SendTo(std::string_view data, const SocketAddress& to, int flags = 0) {
    return internal::SendToAwaiter(state_, data, to.ToNative(), flags);
  }

  // -- For weft's own parts.

  explicit Socket(internal::IntrusivePtr<internal::SocketState> state) : state_(std::move(state)) {}
  const internal::IntrusivePtr<internal::SocketState>& state() const { return state_; }

 private:
  absl::Status ToStatus(int64_t result, std::string_view tried) const;

  internal::IntrusivePtr<internal::SocketState> state_;
};

namespace internal {

// Lets others bind the same port as well (SO_REUSEPORT).
// Errors: UNIMPLEMENTED on a system where no port can be shared.
absl::Status SharePort(Socket& socket);

}  // namespace internal
}  // namespace weft

#endif  // WEFT_NET_SOCKET_H_

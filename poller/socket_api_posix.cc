// Copyright 2026 The weft Authors.
// SPDX-License-Identifier: Apache-2.0

#include <errno.h>
#include <fcntl.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <sys/socket.h>
#include <unistd.h>

#include "weft/poller/perform_posix.h"
#include "weft/poller/socket_api.h"

namespace weft {

namespace {

#ifdef __linux__
constexpr int kOpenFlags = SOCK_NONBLOCK | SOCK_CLOEXEC;
#else
constexpr int kOpenFlags = 0;  // Set afterwards, by `Prepare()`.
#endif

// -1 as a negated errno.
int Result(int result) { return result < 0 ? -errno : result; }

int Fd(NativeHandle socket) { return static_cast<int>(socket); }

int NativeType(SocketType type) {
  switch (type) {
    case SocketType::kStream:
      return SOCK_STREAM;
    case SocketType::kDatagram:
      return SOCK_DGRAM;
    case SocketType::kSeqPacket:
      return SOCK_SEQPACKET;
  }
  return -1;
}

int NativeDomain(SocketDomain domain) {
  switch (domain) {
    case SocketDomain::kInet:
      return AF_INET;
    case SocketDomain::kInet6:
      return AF_INET6;
    case SocketDomain::kUnix:
      return AF_UNIX;
  }
  return -1;
}

// What a system without the flags for it does in steps.
void Prepare(int fd) {
  if (kOpenFlags == 0) {
    ::fcntl(fd, F_SETFD, FD_CLOEXEC);
    ::fcntl(fd, F_SETFL, ::fcntl(fd, F_GETFL) | O_NONBLOCK);
  }
#ifdef SO_NOSIGPIPE
  const int on = 1;
  ::setsockopt(fd, SOL_SOCKET, SO_NOSIGPIPE, &on, sizeof(on));
#endif
}

// Level and name of all options that are an `int` to the kernel as well.
struct OptionName {
  int level;
  int name;
};

OptionName NativeOption(SocketOption option) {
  switch (option) {
    case SocketOption::kReuseAddr:
      return {SOL_SOCKET, SO_REUSEADDR};
    case SocketOption::kReusePort:
      return {SOL_SOCKET, SO_REUSEPORT};
    case SocketOption::kKeepAlive:
      return {SOL_SOCKET, SO_KEEPALIVE};
    case SocketOption::kBroadcast:
      return {SOL_SOCKET, SO_BROADCAST};
    case SocketOption::kNoDelay:
      return {IPPROTO_TCP, TCP_NODELAY};
    case SocketOption::kV6Only:
      return {IPPROTO_IPV6, IPV6_V6ONLY};
    case SocketOption::kSendBuffer:
      return {SOL_SOCKET, SO_SNDBUF};
    case SocketOption::kReceiveBuffer:
      return {SOL_SOCKET, SO_RCVBUF};
    case SocketOption::kLinger:
      return {SOL_SOCKET, SO_LINGER};
    case SocketOption::kError:
      return {SOL_SOCKET, SO_ERROR};
  }
  return {-1, -1};
}

class PosixSocketApi final : public SocketApi {
 public:
  NativeHandle Open(SocketDomain domain, SocketType type, int protocol) override {
    const int fd = Result(::socket(NativeDomain(domain), NativeType(type) | kOpenFlags, protocol));
    if (fd >= 0) Prepare(fd);
    return fd;
  }

  int OpenPair(SocketType type, NativeHandle pair[2]) override {
    int fds[2];
    if (::socketpair(AF_UNIX, NativeType(type) | kOpenFlags, 0, fds) < 0) return -errno;
    for (int i = 0; i < 2; ++i) {
      Prepare(fds[i]);
      pair[i] = fds[i];
    }
    return 0;
  }

  int Bind(NativeHandle socket, const SockAddr& address) override {
    return Result(
        ::bind(Fd(socket), reinterpret_cast<const sockaddr*>(address.bytes), address.length));
  }

  int Listen(NativeHandle socket, int backlog) override {
    return Result(::listen(Fd(socket), backlog));
  }

  int GetSockName(NativeHandle socket, SockAddr* address) override {
    socklen_t length = SockAddr::kCapacity;
    if (::getsockname(Fd(socket), reinterpret_cast<sockaddr*>(address->bytes), &length) < 0) {
      return -errno;
    }
    address->length = length;
    return 0;
  }

  int GetPeerName(NativeHandle socket, SockAddr* address) override {
    socklen_t length = SockAddr::kCapacity;
    if (::getpeername(Fd(socket), reinterpret_cast<sockaddr*>(address->bytes), &length) < 0) {
      return -errno;
    }
    address->length = length;
    return 0;
  }

  int SetOption(NativeHandle socket, SocketOption option, int value) override {
    const OptionName native = NativeOption(option);
    if (option == SocketOption::kLinger) {
      const linger seconds = {.l_onoff = value >= 0, .l_linger = value >= 0 ? value : 0};
      return SetRawOption(socket, native.level, native.name, &seconds, sizeof(seconds));
    }
    return SetRawOption(socket, native.level, native.name, &value, sizeof(value));
  }

  int GetOption(NativeHandle socket, SocketOption option, int* value) override {
    const OptionName native = NativeOption(option);
    if (option == SocketOption::kLinger) {
      linger seconds = {};
      size_t size = sizeof(seconds);
      const int result = GetRawOption(socket, native.level, native.name, &seconds, &size);
      if (result >= 0) *value = seconds.l_onoff != 0 ? seconds.l_linger : -1;
      return result;
    }
    size_t size = sizeof(*value);
    return GetRawOption(socket, native.level, native.name, value, &size);
  }

  int SetRawOption(NativeHandle socket, int level, int name, const void* value,
                   size_t size) override {
    return Result(::setsockopt(Fd(socket), level, name, value, static_cast<socklen_t>(size)));
  }

  int GetRawOption(NativeHandle socket, int level, int name, void* value, size_t* size) override {
    socklen_t length = static_cast<socklen_t>(*size);
    const int result = Result(::getsockopt(Fd(socket), level, name, value, &length));
    *size = length;
    return result;
  }

  int Shutdown(NativeHandle socket, ShutdownHow how) override {
    const int native = how == ShutdownHow::kRead    ? SHUT_RD
                       : how == ShutdownHow::kWrite ? SHUT_WR
                                                    : SHUT_RDWR;
    return Result(::shutdown(Fd(socket), native));
  }

  int Close(NativeHandle socket) override { return internal::Close(socket); }
};

}  // namespace

SocketApi* SystemSocketApi() {
  static PosixSocketApi api;
  return &api;
}

}  // namespace weft

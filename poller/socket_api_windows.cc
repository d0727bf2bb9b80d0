// Copyright 2026 The weft Authors.
// SPDX-License-Identifier: Apache-2.0

// Sockets by Winsock. What it does otherwise than the others is made alike here:
//   * Its errors are errno values (errno_windows.h).
//   * Sockets are made for overlapped calls, which their mode does not matter to, and
//     are non-blocking for all other calls.
//   * IPv6 sockets take IPv4 too, as on the other systems, unless `kV6Only` is set.
//   * A datagram that nobody took is told to a socket that is connected, by
//     ECONNREFUSED, and to no other. See `kConnect` in iocp_poller.cc.
//   * A socket that is not bound has a name all the same: no address, and port 0.

#include <winsock2.h>
// Behind it.
#include <mstcpip.h>
#include <mswsock.h>
#include <ws2tcpip.h>

#include <algorithm>
#include <cerrno>
#include <climits>
#include <cstring>

#include "weft/poller/errno_windows.h"
#include "weft/poller/is_open.h"
#include "weft/poller/socket_api.h"

namespace weft {

namespace {

using internal::LastSocketError;

static_assert(SockAddr::kCapacity >= sizeof(sockaddr_storage));

// Never ends: sockets may be closed while the program does.
void StartWinsock() {
  static const int started = [] {
    WSADATA data;
    return ::WSAStartup(MAKEWORD(2, 2), &data);
  }();
  static_cast<void>(started);  // Else each call says WSANOTINITIALISED: EIO.
}

SOCKET Socket(NativeHandle handle) { return static_cast<SOCKET>(handle); }

// What has failed, on this socket: a number that stands for nothing is EBADF, as elsewhere.
int64_t Failed(NativeHandle socket) {
  const int64_t error = LastSocketError();
  return error == -ENOTSOCK && !internal::IsOpen(socket) ? -EBADF : error;
}

int Result(NativeHandle socket, int result) {
  return result == SOCKET_ERROR ? static_cast<int>(Failed(socket)) : result;
}

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

// The family of a socket that need not be bound; AF_UNSPEC if it is no socket.
int FamilyOf(NativeHandle socket) {
  WSAPROTOCOL_INFOW info = {};
  int size = sizeof(info);
  const int result = ::getsockopt(Socket(socket), SOL_SOCKET, SO_PROTOCOL_INFOW,
                                  reinterpret_cast<char*>(&info), &size);
  return result == 0 ? info.iAddressFamily : AF_UNSPEC;
}

// Level and name of an option; {-1, -1} for what Windows has not.
struct OptionName {
  int level;
  int name;
};

// Since Windows 10; our headers may not have them.
constexpr int kTcpKeepIdle = 3;
constexpr int kTcpKeepCount = 16;
constexpr int kTcpKeepInterval = 17;

OptionName NativeOption(NativeHandle socket, SocketOption option) {
  const auto by_family = [&](int v4, int v6) {
    return FamilyOf(socket) == AF_INET6 ? OptionName{IPPROTO_IPV6, v6} : OptionName{IPPROTO_IP, v4};
  };
  switch (option) {
    case SocketOption::kReuseAddr:
      // SO_REUSEADDR would let another program take the port away.
      return {SOL_SOCKET, SO_EXCLUSIVEADDRUSE};
    case SocketOption::kReusePort:
    case SocketOption::kUserTimeout:
      return {-1, -1};
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
    case SocketOption::kKeepAliveIdle:
      return {IPPROTO_TCP, kTcpKeepIdle};
    case SocketOption::kKeepAliveInterval:
      return {IPPROTO_TCP, kTcpKeepInterval};
    case SocketOption::kKeepAliveCount:
      return {IPPROTO_TCP, kTcpKeepCount};
    case SocketOption::kHopLimit:
      return by_family(IP_TTL, IPV6_UNICAST_HOPS);
    case SocketOption::kMulticastHopLimit:
      return by_family(IP_MULTICAST_TTL, IPV6_MULTICAST_HOPS);
    case SocketOption::kMulticastLoop:
      return by_family(IP_MULTICAST_LOOP, IPV6_MULTICAST_LOOP);
    case SocketOption::kMulticastInterface:
      return by_family(IP_MULTICAST_IF, IPV6_MULTICAST_IF);
  }
  return {-1, -1};
}

// What the protocol-independent options of RFC 3678 take.
int ChangeMembership(NativeHandle socket, int name, const SockAddr& group, uint32_t number) {
  GROUP_REQ request = {};
  request.gr_interface = number;
  if (group.length > sizeof(request.gr_group)) return -EINVAL;
  std::memcpy(&request.gr_group, group.bytes, group.length);
  const int level = request.gr_group.ss_family == AF_INET6 ? IPPROTO_IPV6 : IPPROTO_IP;
  return Result(socket, ::setsockopt(Socket(socket), level, name,
                                     reinterpret_cast<const char*>(&request), sizeof(request)));
}

int ClampSize(size_t size) { return static_cast<int>(std::min<size_t>(size, INT_MAX)); }

class WindowsSocketApi final : public SocketApi {
 public:
  NativeHandle Open(SocketDomain domain, SocketType type, int protocol) override {
    StartWinsock();
    // Windows has Unix sockets, but neither AcceptEx() nor ConnectEx() takes them.
    if (domain == SocketDomain::kUnix) return -EAFNOSUPPORT;
    const SOCKET opened = ::WSASocketW(NativeDomain(domain), NativeType(type), protocol, nullptr, 0,
                                       WSA_FLAG_OVERLAPPED | WSA_FLAG_NO_HANDLE_INHERIT);
    if (opened == INVALID_SOCKET) return static_cast<NativeHandle>(LastSocketError());
    u_long on = 1;
    ::ioctlsocket(opened, static_cast<long>(FIONBIO), &on);
    if (domain == SocketDomain::kInet6) {
      const DWORD off = 0;
      ::setsockopt(opened, IPPROTO_IPV6, IPV6_V6ONLY, reinterpret_cast<const char*>(&off),
                   sizeof(off));
    }
    if (type == SocketType::kDatagram) {
      BOOL tells = FALSE;
      DWORD size = 0;
      ::WSAIoctl(opened, SIO_UDP_CONNRESET, &tells, sizeof(tells), nullptr, 0, &size, nullptr,
                 nullptr);
    }
    return static_cast<NativeHandle>(opened);
  }

  // Windows has no such call, and no Unix sockets that would do: a connection over
  // loopback, which is nobody else's.
  int OpenPair(SocketType type, NativeHandle pair[2]) override {
    if (type != SocketType::kStream) return -EOPNOTSUPP;
    const NativeHandle listener = Open(SocketDomain::kInet, type, 0);
    if (listener < 0) return static_cast<int>(listener);
    const int result = ConnectPair(listener, pair);
    Close(listener);
    return result;
  }

  int Bind(NativeHandle socket, const SockAddr& address) override {
    return Result(socket, ::bind(Socket(socket), reinterpret_cast<const sockaddr*>(address.bytes),
                                 static_cast<int>(address.length)));
  }

  int Listen(NativeHandle socket, int backlog) override {
    return Result(socket, ::listen(Socket(socket), backlog));
  }

  int GetSockName(NativeHandle socket, SockAddr* address) override {
    int length = SockAddr::kCapacity;
    if (::getsockname(Socket(socket), reinterpret_cast<sockaddr*>(address->bytes), &length) == 0) {
      address->length = static_cast<uint32_t>(length);
      return 0;
    }
    const int64_t error = Failed(socket);
    const int family = error == -EINVAL ? FamilyOf(socket) : AF_UNSPEC;
    if (family != AF_INET && family != AF_INET6) return static_cast<int>(error);
    *address = SockAddr();
    reinterpret_cast<sockaddr*>(address->bytes)->sa_family = static_cast<ADDRESS_FAMILY>(family);
    address->length = family == AF_INET ? sizeof(sockaddr_in) : sizeof(sockaddr_in6);
    return 0;
  }

  int GetPeerName(NativeHandle socket, SockAddr* address) override {
    int length = SockAddr::kCapacity;
    if (::getpeername(Socket(socket), reinterpret_cast<sockaddr*>(address->bytes), &length) != 0) {
      return static_cast<int>(Failed(socket));
    }
    address->length = static_cast<uint32_t>(length);
    return 0;
  }

  int SetOption(NativeHandle socket, SocketOption option, int value) override {
    const OptionName native = NativeOption(socket, option);
    if (native.level < 0) return internal::IsOpen(socket) ? -ENOPROTOOPT : -EBADF;
    if (option == SocketOption::kMulticastInterface && native.level == IPPROTO_IP) {
      // A number where an address could be, too, is in the byte order of the network.
      const u_long number = ::htonl(static_cast<u_long>(value));
      return SetRawOption(socket, native.level, native.name, &number, sizeof(number));
    }
    if (option == SocketOption::kLinger) {
      linger seconds = {};
      seconds.l_onoff = value >= 0 ? 1 : 0;
      seconds.l_linger = static_cast<u_short>(std::clamp(value, 0, USHRT_MAX));
      return SetRawOption(socket, native.level, native.name, &seconds, sizeof(seconds));
    }
    return SetRawOption(socket, native.level, native.name, &value, sizeof(value));
  }

  int GetOption(NativeHandle socket, SocketOption option, int* value) override {
    const OptionName native = NativeOption(socket, option);
    if (native.level < 0) return internal::IsOpen(socket) ? -ENOPROTOOPT : -EBADF;
    if (option == SocketOption::kMulticastInterface && native.level == IPPROTO_IP) {
      return -ENOPROTOOPT;  // As on the other systems.
    }
    if (option == SocketOption::kLinger) {
      linger seconds = {};
      size_t size = sizeof(seconds);
      const int result = GetRawOption(socket, native.level, native.name, &seconds, &size);
      if (result >= 0) *value = seconds.l_onoff != 0 ? seconds.l_linger : -1;
      return result;
    }
    *value = 0;  // Some write one byte.
    size_t size = sizeof(*value);
    const int result = GetRawOption(socket, native.level, native.name, value, &size);
    if (result >= 0 && option == SocketOption::kError && *value != 0) {
      *value = internal::ErrnoOfWin32(static_cast<uint32_t>(*value));
    }
    return result;
  }

  int SetRawOption(NativeHandle socket, int level, int name, const void* value,
                   size_t size) override {
    return Result(socket, ::setsockopt(Socket(socket), level, name, static_cast<const char*>(value),
                                       ClampSize(size)));
  }

  int GetRawOption(NativeHandle socket, int level, int name, void* value, size_t* size) override {
    int length = ClampSize(*size);
    const int result = Result(
        socket, ::getsockopt(Socket(socket), level, name, static_cast<char*>(value), &length));
    *size = static_cast<size_t>(length);
    return result;
  }

  int JoinGroup(NativeHandle socket, const SockAddr& group, uint32_t number) override {
    return ChangeMembership(socket, MCAST_JOIN_GROUP, group, number);
  }

  int LeaveGroup(NativeHandle socket, const SockAddr& group, uint32_t number) override {
    return ChangeMembership(socket, MCAST_LEAVE_GROUP, group, number);
  }

  int ReceiveMany(NativeHandle socket, DatagramSlot* slots, int count) override {
    for (int i = 0; i < count; ++i) {
      DatagramSlot* const slot = &slots[i];
      int length = SockAddr::kCapacity;
      const int size =
          ::recvfrom(Socket(socket), static_cast<char*>(slot->data), ClampSize(slot->size), 0,
                     reinterpret_cast<sockaddr*>(slot->address.bytes), &length);
      slot->is_truncated = size == SOCKET_ERROR && ::WSAGetLastError() == WSAEMSGSIZE;
      if (size == SOCKET_ERROR && !slot->is_truncated) {
        // An error behind some that came is told by the next call only if it stays: so
        // it is with EAGAIN.
        return i > 0 ? i : static_cast<int>(DatagramError(socket));
      }
      if (!slot->is_truncated) slot->size = static_cast<size_t>(size);
      slot->address.length = static_cast<uint32_t>(length);
    }
    return count;
  }

  int SendMany(NativeHandle socket, const DatagramSlot* slots, int count) override {
    for (int i = 0; i < count; ++i) {
      const DatagramSlot& slot = slots[i];
      const auto* to = slot.address.length == 0
                           ? nullptr
                           : reinterpret_cast<const sockaddr*>(slot.address.bytes);
      const int size = ::sendto(Socket(socket), static_cast<const char*>(slot.data),
                                ClampSize(slot.size), 0, to, static_cast<int>(slot.address.length));
      if (size == SOCKET_ERROR) return i > 0 ? i : static_cast<int>(DatagramError(socket));
    }
    return count;
  }

  int64_t SendSegments(NativeHandle, const void*, size_t, size_t, const SockAddr&) override {
    return -ENOSYS;
  }

  // TransmitFile() has no way to say how far it came when it would have to wait.
  int64_t SendFile(NativeHandle, NativeHandle, int64_t, size_t) override { return -ENOSYS; }

  int Shutdown(NativeHandle socket, ShutdownHow how) override {
    const int native = how == ShutdownHow::kRead    ? SD_RECEIVE
                       : how == ShutdownHow::kWrite ? SD_SEND
                                                    : SD_BOTH;
    return Result(socket, ::shutdown(Socket(socket), native));
  }

  int Close(NativeHandle socket) override { return Result(socket, ::closesocket(Socket(socket))); }

 private:
  // Of a connected socket: nobody took an earlier datagram.
  static int64_t DatagramError(NativeHandle socket) {
    const int64_t error = Failed(socket);
    return error == -ECONNRESET ? -ECONNREFUSED : error;
  }

  int ConnectPair(NativeHandle listener, NativeHandle pair[2]) {
    sockaddr_in loopback = {};
    loopback.sin_family = AF_INET;
    loopback.sin_addr.s_addr = ::htonl(INADDR_LOOPBACK);
    SockAddr address;
    std::memcpy(address.bytes, &loopback, sizeof(loopback));
    address.length = sizeof(loopback);
    int result = Bind(listener, address);
    if (result == 0) result = Listen(listener, 1);
    if (result == 0) result = GetSockName(listener, &address);
    if (result < 0) return result;
    const NativeHandle client = Open(SocketDomain::kInet, SocketType::kStream, 0);
    if (client < 0) return static_cast<int>(client);
    u_long blocks = 0, on = 1;
    ::ioctlsocket(Socket(client), static_cast<long>(FIONBIO), &blocks);
    ::ioctlsocket(Socket(listener), static_cast<long>(FIONBIO), &blocks);
    SockAddr ours;
    const bool is_connected =
        ::connect(Socket(client), reinterpret_cast<const sockaddr*>(address.bytes),
                  static_cast<int>(address.length)) == 0 &&
        GetSockName(client, &ours) == 0;
    while (is_connected) {
      SockAddr peer;
      int length = SockAddr::kCapacity;
      const SOCKET accepted =
          ::accept(Socket(listener), reinterpret_cast<sockaddr*>(peer.bytes), &length);
      if (accepted == INVALID_SOCKET) break;
      // Others may connect to the port as well, for as long as it is there.
      if (static_cast<uint32_t>(length) != ours.length ||
          !std::equal(peer.bytes, peer.bytes + length, ours.bytes)) {
        ::closesocket(accepted);
        continue;
      }
      ::ioctlsocket(Socket(client), static_cast<long>(FIONBIO), &on);
      ::ioctlsocket(accepted, static_cast<long>(FIONBIO), &on);
      // accept() has no flag against inheritance.
      ::SetHandleInformation(reinterpret_cast<HANDLE>(accepted), HANDLE_FLAG_INHERIT, 0);
      pair[0] = client;
      pair[1] = static_cast<NativeHandle>(accepted);
      return 0;
    }
    const int64_t error = LastSocketError();
    Close(client);
    return static_cast<int>(error);
  }
};

}  // namespace

SocketApi* SystemSocketApi() {
  StartWinsock();
  static WindowsSocketApi api;
  return &api;
}

}  // namespace weft

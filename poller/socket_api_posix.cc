// Copyright 2026 The weft Authors.
// SPDX-License-Identifier: Apache-2.0

#include <errno.h>
#include <fcntl.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <sys/socket.h>
#include <sys/uio.h>
#include <unistd.h>

#ifdef __linux__
#include <netinet/udp.h>
#include <sys/sendfile.h>
#endif

#include <algorithm>
#include <cstring>

#include "weft/poller/perform_posix.h"
#include "weft/poller/sigpipe_posix.h"
#include "weft/poller/socket_api.h"
#include "weft/poller/standard_streams_posix.h"

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

// Level and name of all options that are an `int` to the kernel as well; -1 is
// refused by every kernel with ENOPROTOOPT.
struct OptionName {
  int level;
  int name;
};

#if defined(TCP_KEEPIDLE)
constexpr int kTcpKeepIdle = TCP_KEEPIDLE;
#else
constexpr int kTcpKeepIdle = TCP_KEEPALIVE;  // macOS.
#endif
#if defined(TCP_USER_TIMEOUT)
constexpr int kTcpUserTimeout = TCP_USER_TIMEOUT;
#else
constexpr int kTcpUserTimeout = -1;
#endif
#if defined(SO_LINGER_SEC)
constexpr int kLinger = SO_LINGER_SEC;  // macOS, where the other is in ticks of a clock.
#else
constexpr int kLinger = SO_LINGER;
#endif

bool IsInet6(NativeHandle socket) {
  sockaddr_storage address = {};
  socklen_t length = sizeof(address);
  return ::getsockname(Fd(socket), reinterpret_cast<sockaddr*>(&address), &length) == 0 &&
         address.ss_family == AF_INET6;
}

OptionName NativeOption(NativeHandle socket, SocketOption option) {
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
      return {SOL_SOCKET, kLinger};
    case SocketOption::kError:
      return {SOL_SOCKET, SO_ERROR};
    case SocketOption::kKeepAliveIdle:
      return {IPPROTO_TCP, kTcpKeepIdle};
    case SocketOption::kKeepAliveInterval:
      return {IPPROTO_TCP, TCP_KEEPINTVL};
    case SocketOption::kKeepAliveCount:
      return {IPPROTO_TCP, TCP_KEEPCNT};
    case SocketOption::kUserTimeout:
      return {IPPROTO_TCP, kTcpUserTimeout};
    case SocketOption::kHopLimit:
      return IsInet6(socket) ? OptionName{IPPROTO_IPV6, IPV6_UNICAST_HOPS}
                             : OptionName{IPPROTO_IP, IP_TTL};
    case SocketOption::kMulticastHopLimit:
      return IsInet6(socket) ? OptionName{IPPROTO_IPV6, IPV6_MULTICAST_HOPS}
                             : OptionName{IPPROTO_IP, IP_MULTICAST_TTL};
    case SocketOption::kMulticastLoop:
      return IsInet6(socket) ? OptionName{IPPROTO_IPV6, IPV6_MULTICAST_LOOP}
                             : OptionName{IPPROTO_IP, IP_MULTICAST_LOOP};
    case SocketOption::kMulticastInterface:
      return IsInet6(socket) ? OptionName{IPPROTO_IPV6, IPV6_MULTICAST_IF}
                             : OptionName{IPPROTO_IP, IP_MULTICAST_IF};
  }
  return {-1, -1};
}

#ifdef UDP_SEGMENT
// Whether this kernel does, by a socket of UDP.
bool CutsDatagrams(NativeHandle socket) {
  int value = 0;
  socklen_t size = sizeof(value);
  return ::getsockopt(Fd(socket), IPPROTO_UDP, UDP_SEGMENT, &value, &size) == 0;
}

// Whether the kernel has refused to cut these datagrams, and not to send them: a segment
// is larger than the path takes (EINVAL, later EMSGSIZE) or the socket has no checksums
// (EINVAL); the device, or IPsec, leaves those to us (EIO). One that cannot be sent
// uncut either is refused again, one by one. All else is about sending, above all what
// the network has said of an earlier datagram: that it says once.
bool RefusesToCut(int64_t result) {
  return result == -EINVAL || result == -EIO || result == -EMSGSIZE || result == -EOPNOTSUPP;
}
#endif

// Where an address has a length of its own, some calls look at it.
template <class Address>
void SetLength(Address* address, uint32_t length) {
  if constexpr (requires { address->ss_len; }) address->ss_len = static_cast<uint8_t>(length);
}

// What the protocol-independent options of RFC 3678 take.
int ChangeMembership(NativeHandle socket, int name, const SockAddr& group, uint32_t interface) {
  group_req request = {};
  request.gr_interface = interface;
  if (group.length > sizeof(request.gr_group)) return -EINVAL;
  std::memcpy(&request.gr_group, group.bytes, group.length);
  SetLength(&request.gr_group, group.length);
  const int level = request.gr_group.ss_family == AF_INET6 ? IPPROTO_IPV6 : IPPROTO_IP;
  return Result(::setsockopt(Fd(socket), level, name, &request, sizeof(request)));
}

// How many datagrams a call takes.
constexpr int kManyAtMost = 64;

#ifdef MSG_NOSIGNAL
constexpr int kNoSignal = MSG_NOSIGNAL;
#else
constexpr int kNoSignal = 0;  // There it is an option of the socket.
#endif

// Calls `fn` until no signal interrupts it, and turns -1 into a negated errno.
template <class Fn>
int64_t Call(Fn fn) {
  while (true) {
    const int64_t result = fn();
    if (result >= 0) return result;
    if (errno != EINTR) return errno == EWOULDBLOCK ? -EAGAIN : -errno;
  }
}

// A header for `slot`, with its piece. `piece` has to stay.
msghdr HeaderOf(const DatagramSlot& slot, iovec* piece) {
  *piece = {slot.data, slot.size};
  msghdr header = {};
  header.msg_iov = piece;
  header.msg_iovlen = 1;
  return header;
}

void SetReceived(DatagramSlot* slot, const msghdr& header, size_t size) {
  slot->size = std::min(size, slot->size);
  slot->address.length = header.msg_namelen;
  slot->is_truncated = (header.msg_flags & MSG_TRUNC) != 0;
}

void SetDestination(msghdr* header, const SockAddr& address) {
  if (address.length == 0) return;
  header->msg_name = const_cast<unsigned char*>(address.bytes);
  header->msg_namelen = address.length;
}

#ifdef __linux__

int ReceiveSome(int fd, DatagramSlot* slots, int count) {
  mmsghdr messages[kManyAtMost];
  iovec pieces[kManyAtMost];
  for (int i = 0; i < count; ++i) {
    messages[i].msg_hdr = HeaderOf(slots[i], &pieces[i]);
    messages[i].msg_hdr.msg_name = slots[i].address.bytes;
    messages[i].msg_hdr.msg_namelen = SockAddr::kCapacity;
  }
  const int got = static_cast<int>(Call([&] {
    return ::recvmmsg(fd, messages, static_cast<unsigned>(count), MSG_DONTWAIT, nullptr);
  }));
  for (int i = 0; i < got; ++i) SetReceived(&slots[i], messages[i].msg_hdr, messages[i].msg_len);
  return got;
}

int SendSome(int fd, const DatagramSlot* slots, int count) {
  mmsghdr messages[kManyAtMost];
  iovec pieces[kManyAtMost];
  for (int i = 0; i < count; ++i) {
    messages[i].msg_hdr = HeaderOf(slots[i], &pieces[i]);
    SetDestination(&messages[i].msg_hdr, slots[i].address);
  }
  return static_cast<int>(Call([&] {
    return ::sendmmsg(fd, messages, static_cast<unsigned>(count), MSG_DONTWAIT | kNoSignal);
  }));
}

#else

int ReceiveSome(int fd, DatagramSlot* slots, int count) {
  for (int i = 0; i < count; ++i) {
    iovec piece;
    msghdr header = HeaderOf(slots[i], &piece);
    header.msg_name = slots[i].address.bytes;
    header.msg_namelen = SockAddr::kCapacity;
    const int64_t size = Call([&] { return ::recvmsg(fd, &header, MSG_DONTWAIT); });
    // An error behind some that came is told by the next call only if it stays: so it
    // is with EAGAIN.
    if (size < 0) return i > 0 ? i : static_cast<int>(size);
    SetReceived(&slots[i], header, static_cast<size_t>(size));
  }
  return count;
}

int SendSome(int fd, const DatagramSlot* slots, int count) {
  for (int i = 0; i < count; ++i) {
    iovec piece;
    msghdr header = HeaderOf(slots[i], &piece);
    SetDestination(&header, slots[i].address);
    const int64_t size = Call([&] { return ::sendmsg(fd, &header, MSG_DONTWAIT | kNoSignal); });
    if (size < 0) return i > 0 ? i : static_cast<int>(size);
  }
  return count;
}

#endif

class PosixSocketApi final : public SocketApi {
 public:
  NativeHandle Open(SocketDomain domain, SocketType type, int protocol) override {
    const int fd = internal::AboveStandardStreams(
        ::socket(NativeDomain(domain), NativeType(type) | kOpenFlags, protocol));
    if (fd >= 0) Prepare(fd);
    return fd;
  }

  int OpenPair(SocketType type, NativeHandle pair[2]) override {
    int fds[2];
    if (::socketpair(AF_UNIX, NativeType(type) | kOpenFlags, 0, fds) < 0) return -errno;
    if (const int error = internal::AboveStandardStreams(fds)) return error;
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
    const OptionName native = NativeOption(socket, option);
    if (option == SocketOption::kMulticastInterface && native.level == IPPROTO_IP) {
      ip_mreqn request = {};
      request.imr_ifindex = value;
      return SetRawOption(socket, native.level, native.name, &request, sizeof(request));
    }
    if (option == SocketOption::kLinger) {
      const linger seconds = {.l_onoff = value >= 0, .l_linger = value >= 0 ? value : 0};
      return SetRawOption(socket, native.level, native.name, &seconds, sizeof(seconds));
    }
    return SetRawOption(socket, native.level, native.name, &value, sizeof(value));
  }

  int GetOption(NativeHandle socket, SocketOption option, int* value) override {
    const OptionName native = NativeOption(socket, option);
    if (option == SocketOption::kMulticastInterface && native.level == IPPROTO_IP) {
      // Asked for the number, Linux gives an address: only IPv6 has it both ways.
      return -ENOPROTOOPT;
    }
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

  int JoinGroup(NativeHandle socket, const SockAddr& group, uint32_t interface) override {
    // Else Linux gives to a socket that is bound to all interfaces what comes for any
    // group that anybody has joined (ip(7)).
    const int off = 0;
#ifdef IP_MULTICAST_ALL
    ::setsockopt(Fd(socket), IPPROTO_IP, IP_MULTICAST_ALL, &off, sizeof(off));
#endif
#ifdef IPV6_MULTICAST_ALL
    ::setsockopt(Fd(socket), IPPROTO_IPV6, IPV6_MULTICAST_ALL, &off, sizeof(off));
#endif
    static_cast<void>(off);
    return ChangeMembership(socket, MCAST_JOIN_GROUP, group, interface);
  }

  int LeaveGroup(NativeHandle socket, const SockAddr& group, uint32_t interface) override {
    return ChangeMembership(socket, MCAST_LEAVE_GROUP, group, interface);
  }

  int ReceiveMany(NativeHandle socket, DatagramSlot* slots, int count) override {
    return ReceiveSome(Fd(socket), slots, std::min(count, kManyAtMost));
  }

  int SendMany(NativeHandle socket, const DatagramSlot* slots, int count) override {
    return SendSome(Fd(socket), slots, std::min(count, kManyAtMost));
  }

  int64_t SendSegments(NativeHandle socket, const void* data, size_t size, size_t segment_size,
                       const SockAddr& address) override {
#ifdef UDP_SEGMENT
    // A kernel that does not know it ignores it, and would send one large datagram.
    static const bool is_known = CutsDatagrams(socket);
    if (!is_known) return -ENOSYS;
    iovec piece = {const_cast<void*>(data), size};
    msghdr header = {};
    header.msg_iov = &piece;
    header.msg_iovlen = 1;
    SetDestination(&header, address);
    const uint16_t each = static_cast<uint16_t>(segment_size);
    alignas(cmsghdr) char control[CMSG_SPACE(sizeof(each))] = {};
    header.msg_control = control;
    header.msg_controllen = sizeof(control);
    cmsghdr* const part = CMSG_FIRSTHDR(&header);
    part->cmsg_level = IPPROTO_UDP;
    part->cmsg_type = UDP_SEGMENT;
    part->cmsg_len = CMSG_LEN(sizeof(each));
    std::memcpy(CMSG_DATA(part), &each, sizeof(each));
    const int64_t result =
        Call([&] { return ::sendmsg(Fd(socket), &header, MSG_DONTWAIT | kNoSignal); });
    return RefusesToCut(result) ? -ENOSYS : result;
#else
    static_cast<void>(socket), static_cast<void>(data), static_cast<void>(size);
    static_cast<void>(segment_size), static_cast<void>(address);
    return -ENOSYS;
#endif
  }

  int64_t SendFile(NativeHandle socket, NativeHandle file, int64_t offset, size_t count) override {
#ifdef __linux__
    off_t at = offset;
    internal::SigpipeBlock block(Fd(socket));  // It has no flags.
    const int64_t result = Call([&] { return ::sendfile(Fd(socket), Fd(file), &at, count); });
    // Also if a part had been sent before it found out.
    if (result < static_cast<int64_t>(count)) block.TakeRaised();
    return result;
#else
    static_cast<void>(socket), static_cast<void>(file);
    static_cast<void>(offset), static_cast<void>(count);
    return -ENOSYS;
#endif
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

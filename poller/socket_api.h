// Copyright 2026 The weft Authors.
// SPDX-License-Identifier: Apache-2.0

#ifndef WEFT_POLLER_SOCKET_API_H_
#define WEFT_POLLER_SOCKET_API_H_

#include <cstddef>
#include <cstdint>

#include "weft/poller/native_handle.h"
#include "weft/poller/sock_addr.h"

namespace weft {

enum class SocketDomain { kInet, kInet6, kUnix };
enum class SocketType { kStream, kDatagram, kSeqPacket };
enum class ShutdownHow { kRead, kWrite, kBoth };

// The options that have the same meaning everywhere; a `bool` is 0 or 1.
enum class SocketOption {
  kReuseAddr,      // bool. Windows: exclusive use instead, which is what is meant.
  kReusePort,      // bool.
  kKeepAlive,      // bool.
  kBroadcast,      // bool.
  kNoDelay,        // bool; TCP.
  kV6Only,         // bool; IPv6.
  kSendBuffer,     // Bytes. Linux reports twice of what was set.
  kReceiveBuffer,  // Bytes.
  kLinger,         // Seconds, or -1 for off. 0: close sends a reset.
  kError,          // Get only, and resets it: an errno (not negated), or 0.

  // TCP, with kKeepAlive: after how many silent seconds a probe is sent, in what
  // intervals others, and after how many without an answer the connection is lost.
  kKeepAliveIdle,
  kKeepAliveInterval,
  kKeepAliveCount,
  // TCP: the connection is lost when what was sent has not been acknowledged for so
  // many milliseconds; 0 is the system's choice. Where there is no such thing:
  // -ENOPROTOOPT.
  kUserTimeout,

  // IP, of either version.
  kHopLimit,            // How many routers a packet may pass; the TTL of IPv4.
  kMulticastHopLimit,   // The same for multicast; 1 unless set.
  kMulticastLoop,       // bool: what is sent to a group comes back to members here.
  kMulticastInterface,  // The number of the interface it leaves by; 0: the system's choice.
};

// One datagram of several that are received or sent in one call.
struct DatagramSlot {
  void* data = nullptr;
  size_t size = 0;            // To receive: the room; then how much came. To send: how much.
  SockAddr address;           // From where; to where, or of length 0 if connected.
  bool is_truncated = false;  // Received: there was more than room for it.
};

// SocketApi
//
// What can be asked of sockets without waiting: the synchronous companion of
// `Poller`. Behind an interface, so that a simulated network can take the place
// of both.
//
// Each function returns >= 0, or a negated errno, as `Operation::result` does.
// Sockets that it opens are non-blocking and not inherited by child processes.
//
// Threads: `SystemSocketApi()` may be used from any; another as it says.
class SocketApi {
 public:
  virtual ~SocketApi() = default;

  // The handle. `protocol` 0 is the usual one of domain and type.
  virtual NativeHandle Open(SocketDomain domain, SocketType type, int protocol = 0) = 0;

  // Two that are connected to each other; Unix sockets.
  virtual int OpenPair(SocketType type, NativeHandle pair[2]) = 0;

  virtual int Bind(NativeHandle socket, const SockAddr& address) = 0;
  virtual int Listen(NativeHandle socket, int backlog) = 0;
  virtual int GetSockName(NativeHandle socket, SockAddr* address) = 0;
  virtual int GetPeerName(NativeHandle socket, SockAddr* address) = 0;

  virtual int SetOption(NativeHandle socket, SocketOption option, int value) = 0;
  virtual int GetOption(NativeHandle socket, SocketOption option, int* value) = 0;

  // By the platform's own numbers, for what the list above does not have.
  // `*size` is the room on the way in, and the length on the way out.
  virtual int SetRawOption(NativeHandle socket, int level, int name, const void* value,
                           size_t size) = 0;
  virtual int GetRawOption(NativeHandle socket, int level, int name, void* value, size_t* size) = 0;

  // Has `socket` receive what is sent to the multicast address `group`, by the
  // interface of that number (0: the system's choice), or no more.
  virtual int JoinGroup(NativeHandle socket, const SockAddr& group, uint32_t interface) = 0;
  virtual int LeaveGroup(NativeHandle socket, const SockAddr& group, uint32_t interface) = 0;

  // Receives what datagrams there are, up to `count`, and sends as many as there is room
  // for. How many; -EAGAIN if none, or what befell the first.
  virtual int ReceiveMany(NativeHandle socket, DatagramSlot* slots, int count) = 0;
  virtual int SendMany(NativeHandle socket, const DatagramSlot* slots, int count) = 0;

  // Sends `size` bytes as datagrams of `segment_size`, 64 at most, the last of which may
  // be shorter, to `address` unless its length is 0: all of them, or -EAGAIN. -ENOSYS:
  // this kernel, this device or this kind of socket cannot; SendMany() can. Any other is
  // the error of sending, or that of a datagram before, and is told once.
  // REQUIRES: it is a socket of UDP.
  virtual int64_t SendSegments(NativeHandle socket, const void* data, size_t size,
                               size_t segment_size, const SockAddr& address) = 0;

  // Sends up to `count` bytes of a file from `offset` on: how many; 0 at its end;
  // -EAGAIN if there is no room. -EINVAL, -ENOSYS, -EOPNOTSUPP or -ESPIPE: the kernel
  // cannot do it by itself with this file or this socket.
  virtual int64_t SendFile(NativeHandle socket, NativeHandle file, int64_t offset,
                           size_t count) = 0;

  virtual int Shutdown(NativeHandle socket, ShutdownHow how) = 0;

  // Closes a socket that no poller has seen. One that a poller has seen is retired
  // (`Operation::PrepareRetire()`).
  virtual int Close(NativeHandle socket) = 0;
};

// The operating system's. Lives as long as the program.
SocketApi* SystemSocketApi();

}  // namespace weft

#endif  // WEFT_POLLER_SOCKET_API_H_

// Copyright 2026 The weft Authors.
// SPDX-License-Identifier: Apache-2.0

#ifndef WEFT_POLLER_SOCKET_API_H_
#define WEFT_POLLER_SOCKET_API_H_

#include <cstddef>

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

  virtual int Shutdown(NativeHandle socket, ShutdownHow how) = 0;

  // Closes a socket that no poller has seen. One that a poller has seen is retired
  // (`Operation::PrepareRetire()`).
  virtual int Close(NativeHandle socket) = 0;
};

// The operating system's. Lives as long as the program.
SocketApi* SystemSocketApi();

}  // namespace weft

#endif  // WEFT_POLLER_SOCKET_API_H_

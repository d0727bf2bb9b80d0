// Copyright 2026 The weft Authors.
// SPDX-License-Identifier: Apache-2.0

#include "weft/bench/peers/echo.h"

#include <netinet/in.h>
#include <netinet/tcp.h>
#include <sys/socket.h>

#include <cstdio>
#include <cstdlib>

namespace weft::bench {

int ListenOnLoopback() {
  const int listener = ::socket(AF_INET, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0);
  sockaddr_in address = {};
  address.sin_family = AF_INET;
  address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  if (::bind(listener, reinterpret_cast<sockaddr*>(&address), sizeof(address)) < 0 ||
      ::listen(listener, 4096) < 0) {
    std::perror("listen");
    std::exit(1);
  }
  return listener;
}

int PortOf(int listener) {
  sockaddr_in address = {};
  socklen_t size = sizeof(address);
  ::getsockname(listener, reinterpret_cast<sockaddr*>(&address), &size);
  return ntohs(address.sin_port);
}

void Announce(int port) {
#ifdef NDEBUG
  std::printf("%d opt\n", port);
#else
  std::printf("%d debug\n", port);
#endif
  std::fflush(stdout);
}

void SetNoDelay(int fd) {
  const int on = 1;
  ::setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &on, sizeof(on));
}

}  // namespace weft::bench

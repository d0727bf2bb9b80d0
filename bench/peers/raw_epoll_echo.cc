// Copyright 2026 The weft Authors.
// SPDX-License-Identifier: Apache-2.0

// The lower bound for an echo server on epoll: edge-triggered, each descriptor registered
// once, one buffer for all, a short read taken as "there is no more".

#include <sys/epoll.h>
#include <sys/socket.h>
#include <unistd.h>

#include <cerrno>
#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

#include "weft/bench/peers/echo.h"

namespace {

char buffer[65536];

struct Connection {
  int fd;
  std::string unsent = {};
};

// False once the connection is over.
bool SendUnsent(Connection* connection) {
  std::string& unsent = connection->unsent;
  const ssize_t sent = ::send(connection->fd, unsent.data(), unsent.size(), MSG_NOSIGNAL);
  if (sent < 0) return errno == EAGAIN;
  unsent.erase(0, static_cast<size_t>(sent));
  return true;
}

bool Echo(Connection* connection) {
  while (true) {
    if (!connection->unsent.empty()) {
      if (!SendUnsent(connection)) return false;
      if (!connection->unsent.empty()) return true;  // The kernel tells when there is room.
    }
    const ssize_t received = ::recv(connection->fd, buffer, sizeof(buffer), 0);
    if (received < 0) return errno == EAGAIN;
    if (received == 0) return false;
    const auto count = static_cast<size_t>(received);
    const ssize_t sent = ::send(connection->fd, buffer, count, MSG_NOSIGNAL);
    if (sent < 0 && errno != EAGAIN) return false;
    const size_t gone = sent < 0 ? 0 : static_cast<size_t>(sent);
    connection->unsent.assign(buffer + gone, count - gone);
    if (connection->unsent.empty() && count < sizeof(buffer)) return true;
  }
}

}  // namespace

int main() {
  const int listener = weft::bench::ListenOnLoopback();
  const int epoll = ::epoll_create1(EPOLL_CLOEXEC);
  epoll_event event = {EPOLLIN | EPOLLET, {}};
  event.data.ptr = nullptr;
  ::epoll_ctl(epoll, EPOLL_CTL_ADD, listener, &event);
  weft::bench::Announce(weft::bench::PortOf(listener));
  std::vector<epoll_event> events(1024);
  while (true) {
    const int count = ::epoll_wait(epoll, events.data(), static_cast<int>(events.size()), -1);
    for (int i = 0; i < count; ++i) {
      auto* connection = static_cast<Connection*>(events[static_cast<size_t>(i)].data.ptr);
      if (connection != nullptr) {
        if (!Echo(connection)) {
          ::close(connection->fd);
          delete connection;
        }
        continue;
      }
      int fd;
      while ((fd = ::accept4(listener, nullptr, nullptr, SOCK_NONBLOCK | SOCK_CLOEXEC)) >= 0) {
        weft::bench::SetNoDelay(fd);
        event.events = EPOLLIN | EPOLLOUT | EPOLLRDHUP | EPOLLET;
        event.data.ptr = new Connection{fd};
        ::epoll_ctl(epoll, EPOLL_CTL_ADD, fd, &event);
      }
    }
  }
}

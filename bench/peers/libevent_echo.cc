// Copyright 2026 The weft Authors.
// SPDX-License-Identifier: Apache-2.0

// An echo server over libevent: its events, not its bufferevents, which cost more.

#include <event2/event.h>
#include <sys/socket.h>
#include <unistd.h>

#include <cerrno>
#include <cstddef>
#include <string>

#include "weft/bench/peers/echo.h"

namespace {

char buffer[65536];

struct Connection {
  event* readable = nullptr;
  event* writable = nullptr;
  std::string unsent = {};

  void End(int fd) {
    event_free(readable);
    event_free(writable);
    ::close(fd);
    delete this;
  }
};

void OnReadable(evutil_socket_t fd, short, void* data) {
  auto* connection = static_cast<Connection*>(data);
  const ssize_t received = ::recv(fd, buffer, sizeof(buffer), 0);
  if (received < 0 && errno == EAGAIN) return;
  if (received <= 0) return connection->End(fd);
  const auto count = static_cast<size_t>(received);
  const ssize_t sent = ::send(fd, buffer, count, MSG_NOSIGNAL);
  if (sent < 0 && errno != EAGAIN) return connection->End(fd);
  const size_t gone = sent < 0 ? 0 : static_cast<size_t>(sent);
  if (gone == count) return;
  connection->unsent.assign(buffer + gone, count - gone);
  event_del(connection->readable);
  event_add(connection->writable, nullptr);
}

void OnWritable(evutil_socket_t fd, short, void* data) {
  auto* connection = static_cast<Connection*>(data);
  std::string& unsent = connection->unsent;
  const ssize_t sent = ::send(fd, unsent.data(), unsent.size(), MSG_NOSIGNAL);
  if (sent < 0 && errno != EAGAIN) return connection->End(fd);
  if (sent > 0) unsent.erase(0, static_cast<size_t>(sent));
  if (!unsent.empty()) return;
  event_del(connection->writable);
  event_add(connection->readable, nullptr);
}

void OnConnection(evutil_socket_t listener, short, void* base) {
  int fd;
  while ((fd = ::accept4(listener, nullptr, nullptr, SOCK_NONBLOCK | SOCK_CLOEXEC)) >= 0) {
    weft::bench::SetNoDelay(fd);
    auto* connection = new Connection;
    auto* own = static_cast<event_base*>(base);
    connection->readable = event_new(own, fd, EV_READ | EV_PERSIST, OnReadable, connection);
    connection->writable = event_new(own, fd, EV_WRITE | EV_PERSIST, OnWritable, connection);
    event_add(connection->readable, nullptr);
  }
}

}  // namespace

int main() {
  const int listener = weft::bench::ListenOnLoopback();
  event_base* base = event_base_new();
  event* accepting = event_new(base, listener, EV_READ | EV_PERSIST, OnConnection, base);
  event_add(accepting, nullptr);
  weft::bench::Announce(weft::bench::PortOf(listener));
  event_base_dispatch(base);
}

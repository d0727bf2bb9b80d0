// Copyright 2026 The weft Authors.
// SPDX-License-Identifier: Apache-2.0

// An echo server over libev: a watcher for each direction of a connection, level-triggered,
// one buffer for all.

#include <ev.h>
#include <sys/socket.h>
#include <unistd.h>

#include <cerrno>
#include <cstddef>
#include <string>

#include "weft/bench/peers/echo.h"

namespace {

using Loop = struct ev_loop;

char buffer[65536];

struct Connection {
  ev_io readable;
  ev_io writable;
  std::string unsent;

  void End(Loop* loop) {
    ev_io_stop(loop, &readable);
    ev_io_stop(loop, &writable);
    ::close(readable.fd);
    delete this;
  }
};

void OnReadable(Loop* loop, ev_io* watcher, int) {
  auto* connection = static_cast<Connection*>(watcher->data);
  const ssize_t received = ::recv(watcher->fd, buffer, sizeof(buffer), 0);
  if (received < 0 && errno == EAGAIN) return;
  if (received <= 0) return connection->End(loop);
  const auto count = static_cast<size_t>(received);
  const ssize_t sent = ::send(watcher->fd, buffer, count, MSG_NOSIGNAL);
  if (sent < 0 && errno != EAGAIN) return connection->End(loop);
  const size_t gone = sent < 0 ? 0 : static_cast<size_t>(sent);
  if (gone == count) return;
  connection->unsent.assign(buffer + gone, count - gone);
  ev_io_stop(loop, &connection->readable);
  ev_io_start(loop, &connection->writable);
}

void OnWritable(Loop* loop, ev_io* watcher, int) {
  auto* connection = static_cast<Connection*>(watcher->data);
  std::string& unsent = connection->unsent;
  const ssize_t sent = ::send(watcher->fd, unsent.data(), unsent.size(), MSG_NOSIGNAL);
  if (sent < 0 && errno != EAGAIN) return connection->End(loop);
  if (sent > 0) unsent.erase(0, static_cast<size_t>(sent));
  if (!unsent.empty()) return;
  ev_io_stop(loop, &connection->writable);
  ev_io_start(loop, &connection->readable);
}

void OnConnection(Loop* loop, ev_io* watcher, int) {
  int fd;
  while ((fd = ::accept4(watcher->fd, nullptr, nullptr, SOCK_NONBLOCK | SOCK_CLOEXEC)) >= 0) {
    weft::bench::SetNoDelay(fd);
    auto* connection = new Connection;
    connection->readable.data = connection->writable.data = connection;
    ev_io_init(&connection->readable, OnReadable, fd, EV_READ);
    ev_io_init(&connection->writable, OnWritable, fd, EV_WRITE);
    ev_io_start(loop, &connection->readable);
  }
}

}  // namespace

int main() {
  const int listener = weft::bench::ListenOnLoopback();
  Loop* loop = ev_loop_new(EVBACKEND_EPOLL);
  ev_io accepting;
  ev_io_init(&accepting, OnConnection, listener, EV_READ);
  ev_io_start(loop, &accepting);
  weft::bench::Announce(weft::bench::PortOf(listener));
  ev_run(loop, 0);
}

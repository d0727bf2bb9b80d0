// Copyright 2026 The weft Authors.
// SPDX-License-Identifier: Apache-2.0

// The lower bound for an echo server on io_uring: multishot accept and receive, provided
// buffers, one io_uring_enter() a round.

#include <liburing.h>
#include <unistd.h>

#include <cerrno>
#include <cstddef>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <string>
#include <utility>
#include <vector>

#include "weft/bench/peers/echo.h"

namespace {

constexpr unsigned kBuffers = 2048;
constexpr size_t kBufferSize = 16384;
constexpr int kGroup = 0;

enum Kind : uint64_t { kAccept, kReceive, kSend };

class Server {
 public:
  explicit Server(int listener) : listener_(listener) {
    io_uring_params parameters = {};
    parameters.flags = IORING_SETUP_SINGLE_ISSUER | IORING_SETUP_DEFER_TASKRUN |
                       IORING_SETUP_CQSIZE | IORING_SETUP_CLAMP;
    parameters.cq_entries = 32768;
    if (const int error = io_uring_queue_init_params(4096, &ring_, &parameters); error < 0) {
      errno = -error;
      std::perror("io_uring");
      std::exit(1);
    }
    memory_.resize(kBuffers * kBufferSize);
    void* ring = nullptr;
    const size_t size = kBuffers * sizeof(io_uring_buf);
    if (::posix_memalign(&ring, 4096, size) != 0) std::exit(1);
    buffers_ = static_cast<io_uring_buf_ring*>(ring);
    io_uring_buf_reg registration = {};
    registration.ring_addr = reinterpret_cast<uint64_t>(buffers_);
    registration.ring_entries = kBuffers;
    registration.bgid = kGroup;
    if (const int error = io_uring_register_buf_ring(&ring_, &registration, 0); error < 0) {
      errno = -error;
      std::perror("provided buffers");
      std::exit(1);
    }
    io_uring_buf_ring_init(buffers_);
    for (unsigned i = 0; i < kBuffers; ++i) GiveBack(i);
  }

  void Run() {
    Accept();
    while (true) {
      io_uring_submit_and_wait(&ring_, 1);
      io_uring_cqe* completion;
      unsigned head;
      unsigned count = 0;
      io_uring_for_each_cqe(&ring_, head, completion) {
        ++count;
        Handle(*completion);
      }
      io_uring_cq_advance(&ring_, count);
    }
  }

 private:
  // What of a connection has been received and is being sent: a buffer, from an offset.
  struct Piece {
    unsigned buffer;
    size_t size;
  };
  struct Connection {
    std::vector<Piece> unsent = {};
    bool is_receiving = false;
    bool is_over = false;
  };

  io_uring_sqe* Next() {
    io_uring_sqe* entry = io_uring_get_sqe(&ring_);
    if (entry != nullptr) return entry;
    io_uring_submit(&ring_);
    return io_uring_get_sqe(&ring_);
  }
  static void Name(io_uring_sqe* entry, Kind kind, int fd) {
    io_uring_sqe_set_data64(entry, kind << 32 | static_cast<uint32_t>(fd));
  }

  void Accept() {
    io_uring_sqe* entry = Next();
    io_uring_prep_multishot_accept(entry, listener_, nullptr, nullptr, SOCK_CLOEXEC);
    Name(entry, kAccept, listener_);
  }

  char* Memory(unsigned buffer) { return memory_.data() + buffer * kBufferSize; }

  void GiveBack(unsigned buffer) {
    io_uring_buf_ring_add(buffers_, Memory(buffer), kBufferSize, static_cast<uint16_t>(buffer),
                          io_uring_buf_ring_mask(kBuffers), 0);
    io_uring_buf_ring_advance(buffers_, 1);
  }

  void Receive(int fd) {
    io_uring_sqe* entry = Next();
    io_uring_prep_recv_multishot(entry, fd, nullptr, 0, 0);
    entry->flags |= IOSQE_BUFFER_SELECT;
    entry->buf_group = kGroup;
    Name(entry, kReceive, fd);
    connections_[static_cast<size_t>(fd)].is_receiving = true;
  }

  void SendFirst(int fd) {
    const Piece& piece = connections_[static_cast<size_t>(fd)].unsent.front();
    io_uring_sqe* entry = Next();
    io_uring_prep_send(entry, fd, Memory(piece.buffer), piece.size, MSG_WAITALL | MSG_NOSIGNAL);
    Name(entry, kSend, fd);
  }

  void CloseIfOver(int fd) {
    Connection& connection = connections_[static_cast<size_t>(fd)];
    if (!connection.is_over || connection.is_receiving || !connection.unsent.empty()) return;
    connection = {};
    ::close(fd);
  }

  void Handle(const io_uring_cqe& completion) {
    const auto kind = static_cast<Kind>(completion.user_data >> 32);
    const auto fd = static_cast<int>(completion.user_data & 0xffffffff);
    const bool has_more = (completion.flags & IORING_CQE_F_MORE) != 0;
    if (kind == kAccept) {
      if (completion.res >= 0) {
        const int connection = completion.res;
        weft::bench::SetNoDelay(connection);
        if (connections_.size() <= static_cast<size_t>(connection)) {
          connections_.resize(static_cast<size_t>(connection) + 1);
        }
        Receive(connection);
      }
      if (!has_more) Accept();
      return;
    }
    Connection& connection = connections_[static_cast<size_t>(fd)];
    if (kind == kReceive) {
      if (!has_more) connection.is_receiving = false;
      if (completion.res > 0) {
        const unsigned buffer = completion.flags >> IORING_CQE_BUFFER_SHIFT;
        connection.unsent.push_back({buffer, static_cast<size_t>(completion.res)});
        if (connection.unsent.size() == 1) SendFirst(fd);
        if (!has_more) Receive(fd);
      } else if (completion.res == -ENOBUFS) {
        Receive(fd);
      } else {
        connection.is_over = true;
        CloseIfOver(fd);
      }
      return;
    }
    GiveBack(connection.unsent.front().buffer);
    connection.unsent.erase(connection.unsent.begin());
    if (completion.res < 0) {
      connection.is_over = true;
      for (const Piece& piece : std::exchange(connection.unsent, {})) GiveBack(piece.buffer);
    }
    if (!connection.unsent.empty()) SendFirst(fd);
    CloseIfOver(fd);
  }

  const int listener_;
  io_uring ring_;
  io_uring_buf_ring* buffers_ = nullptr;
  std::vector<char> memory_;
  std::vector<Connection> connections_;  // By descriptor.
};

}  // namespace

int main() {
  const int listener = weft::bench::ListenOnLoopback();
  Server server(listener);
  weft::bench::Announce(weft::bench::PortOf(listener));
  server.Run();
}

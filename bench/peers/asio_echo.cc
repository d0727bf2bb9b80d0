// Copyright 2026 The weft Authors.
// SPDX-License-Identifier: Apache-2.0

// An echo server over Asio: by handlers, or with the argument --coroutines by those. Each
// connection has a buffer of its own, as Asio's operations ask for one.

#include <array>
#include <boost/asio.hpp>
#include <cstddef>
#include <memory>
#include <string_view>
#include <utility>

#include "weft/bench/peers/echo.h"

namespace {

namespace asio = boost::asio;
using asio::ip::tcp;
using boost::system::error_code;

constexpr size_t kBuffer = 16384;

class Session : public std::enable_shared_from_this<Session> {
 public:
  explicit Session(tcp::socket socket) : socket_(std::move(socket)) {}

  void Read() {
    socket_.async_read_some(asio::buffer(buffer_),
                            [self = shared_from_this()](error_code error, size_t size) {
                              if (!error) self->Write(size);
                            });
  }

 private:
  void Write(size_t size) {
    asio::async_write(socket_, asio::buffer(buffer_, size),
                      [self = shared_from_this()](error_code error, size_t) {
                        if (!error) self->Read();
                      });
  }

  tcp::socket socket_;
  std::array<char, kBuffer> buffer_;
};

void Accept(tcp::acceptor& acceptor) {
  acceptor.async_accept([&acceptor](error_code error, tcp::socket socket) {
    if (!error) {
      socket.set_option(tcp::no_delay(true), error);
      std::make_shared<Session>(std::move(socket))->Read();
    }
    Accept(acceptor);
  });
}

constexpr auto kAsTuple = asio::as_tuple(asio::use_awaitable);

asio::awaitable<void> Echo(tcp::socket socket) {
  std::array<char, kBuffer> buffer;
  while (true) {
    auto [error, size] = co_await socket.async_read_some(asio::buffer(buffer), kAsTuple);
    if (error) co_return;
    auto [write_error, sent] =
        co_await asio::async_write(socket, asio::buffer(buffer, size), kAsTuple);
    if (write_error) co_return;
  }
}

asio::awaitable<void> AcceptAll(tcp::acceptor& acceptor) {
  while (true) {
    auto [error, socket] = co_await acceptor.async_accept(kAsTuple);
    if (error) continue;
    socket.set_option(tcp::no_delay(true), error);
    asio::co_spawn(acceptor.get_executor(), Echo(std::move(socket)), asio::detached);
  }
}

}  // namespace

int main(int argc, char** argv) {
  const int fd = weft::bench::ListenOnLoopback();
  asio::io_context context(1);
  tcp::acceptor acceptor(context, tcp::v4(), fd);
  if (argc > 1 && std::string_view(argv[1]) == "--coroutines") {
    asio::co_spawn(context, AcceptAll(acceptor), asio::detached);
  } else {
    Accept(acceptor);
  }
  weft::bench::Announce(weft::bench::PortOf(fd));
  context.run();
}

// Copyright 2026 The weft Authors.
// SPDX-License-Identifier: Apache-2.0

// weft's echo server, to be measured from outside: measure.py. Prints its port and how it
// was built, and serves until its standard input ends.
//
//   echo_server --poller=NAME [--by=streams|sockets|callbacks]
//   echo_server --poller=NAME --wakes=COUNT --other-cpu=N
//
// With --wakes it serves nobody, but measures how long it takes from a post of another
// thread, on another processor, until the sleeping loop runs it: prints the median.

#include <sched.h>
#include <sys/socket.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <cerrno>
#include <chrono>
#include <cstdint>
#include <cstdlib>
#include <iostream>
#include <optional>
#include <string>
#include <string_view>
#include <thread>
#include <utility>
#include <vector>

#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/strip.h"
#include "weft/core/clock.h"
#include "weft/core/errors.h"
#include "weft/core/task.h"
#include "weft/loop/run.h"
#include "weft/loop/to_thread.h"
#include "weft/net/pipe.h"
#include "weft/net/server.h"
#include "weft/net/socket.h"
#include "weft/net/stream.h"

namespace weft {
namespace {

#ifdef NDEBUG
constexpr char kBuild[] = "opt";
#else
constexpr char kBuild[] = "debug";
#endif

constexpr int kBacklog = 4096;

struct Flags {
  std::string poller;
  std::string by = "streams";
  int wakes = 0;
  int other_cpu = -1;
};

// -- By streams: what most will write.

Coro<void> EchoByStreams(StreamReader reader, StreamWriter writer) {
  while (true) {
    absl::StatusOr<absl::Span<const char>> unread = co_await reader.Fill();
    if (!unread.ok() || unread->empty()) co_return;
    writer.Write(std::string_view(unread->data(), unread->size()));
    reader.Consume(unread->size());
    absl::Status sent = co_await writer.Drain();
    if (!sent.ok()) co_return;
  }
}

// -- By bare sockets, with a buffer for each connection.

Coro<void> EchoBySocket(Socket socket) {
  std::vector<char> buffer(16384);
  while (true) {
    absl::StatusOr<size_t> received = co_await socket.Recv(absl::MakeSpan(buffer));
    if (!received.ok() || *received == 0) co_return;
    absl::Status sent = co_await socket.SendAll(std::string_view(buffer.data(), *received));
    if (!sent.ok()) co_return;
  }
}

Coro<void> AcceptSockets(Socket listener) {
  while (true) {
    absl::StatusOr<Socket> socket = co_await listener.Accept();
    if (!socket.ok()) co_return;
    socket->SetOption(SocketOption::kNoDelay, 1).IgnoreError();
    CreateTask(EchoBySocket(*std::move(socket)));
  }
}

// -- By callbacks: a descriptor of one's own, watched by the loop.

class CallbackConnection {
 public:
  static void Start(int fd) {
    auto* self = new CallbackConnection(fd);
    GetRunningLoop().AddReader(fd, [self] { self->OnReadable(); }).IgnoreError();
  }

 private:
  explicit CallbackConnection(int fd) : fd_(fd) {}
  ~CallbackConnection() {
    EventLoop& loop = GetRunningLoop();
    loop.RemoveReader(fd_);
    loop.RemoveWriter(fd_);
    ::close(fd_);
  }

  void OnReadable() {
    static char buffer[65536];  // One for all: it holds nothing between two calls.
    const ssize_t received = ::recv(fd_, buffer, sizeof(buffer), MSG_DONTWAIT);
    if (received < 0 && errno == EAGAIN) return;
    if (received <= 0) {
      delete this;
      return;
    }
    const std::string_view data(buffer, static_cast<size_t>(received));
    const ssize_t sent =
        unsent_.empty() ? ::send(fd_, data.data(), data.size(), MSG_DONTWAIT | MSG_NOSIGNAL) : 0;
    const size_t gone = sent < 0 ? 0 : static_cast<size_t>(sent);
    if (gone == data.size()) return;
    if (unsent_.empty()) {
      GetRunningLoop().AddWriter(fd_, [this] { OnWritable(); }).IgnoreError();
    }
    unsent_.append(data.substr(gone));
  }

  void OnWritable() {
    const ssize_t sent = ::send(fd_, unsent_.data(), unsent_.size(), MSG_DONTWAIT | MSG_NOSIGNAL);
    if (sent < 0) {
      if (errno != EAGAIN) delete this;
      return;
    }
    unsent_.erase(0, static_cast<size_t>(sent));
    if (unsent_.empty()) GetRunningLoop().RemoveWriter(fd_);
  }

  const int fd_;
  std::string unsent_;
};

void AcceptByCallback(int listener) {
  while (true) {
    const int fd = ::accept4(listener, nullptr, nullptr, SOCK_NONBLOCK | SOCK_CLOEXEC);
    if (fd < 0) return;
    CallbackConnection::Start(fd);
  }
}

// -- The programs

Coro<int> Serve(const Flags& flags) {
  int port = 0;
  std::optional<Server> server;
  Socket listener;
  if (flags.by == "streams") {
    ServerOptions options;
    options.backlog = kBacklog;
    absl::StatusOr<Server> started = co_await StartServer(EchoByStreams, "127.0.0.1", 0, options);
    if (!started.ok()) {
      std::cerr << started.status() << "\n";
      co_return 1;
    }
    server.emplace(*std::move(started));
    port = server->port();
  } else {
    listener = Socket::Open(SocketDomain::kInet).value();
    absl::Status status = listener.Bind(SocketAddress::Ipv4Loopback(0));
    if (status.ok()) status = listener.Listen(kBacklog);
    if (!status.ok()) {
      std::cerr << status << "\n";
      co_return 1;
    }
    port = listener.LocalAddress()->port();
    if (flags.by == "callbacks") {
      const int fd = static_cast<int>(listener.handle());
      GetRunningLoop().AddReader(fd, [fd] { AcceptByCallback(fd); }).IgnoreError();
    } else {
      CreateTask(AcceptSockets(std::move(listener)));
    }
  }
  std::cout << port << " " << kBuild << std::endl;
  absl::StatusOr<StreamReader> input = co_await OpenStandardInput();
  if (input.ok()) {
    absl::StatusOr<std::string> end = co_await input->Read(1);
  }
  std::_Exit(0);  // Ten thousand connections need no orderly end.
}

int64_t MedianWake(const LoopRef& loop, int count) {
  std::vector<int64_t> took(static_cast<size_t>(count), 0);
  std::atomic<int> done = 0;
  for (int64_t& each : took) {
    // As long as the loop needs to fall asleep.
    std::this_thread::sleep_for(std::chrono::microseconds(200));
    const TimePoint begin = SteadyClock::Read();
    const int before = done.load();
    loop.Post([&each, &done, begin] {
      each = (SteadyClock::Read() - begin) / absl::Nanoseconds(1);
      done.fetch_add(1);
    });
    while (done.load() == before) {
    }
  }
  std::nth_element(took.begin(), took.begin() + count / 2, took.end());
  return took[static_cast<size_t>(count / 2)];
}

Coro<int> MeasureWakes(const Flags& flags) {
  const auto measure = [ref = GetRunningLoop().Ref(), &flags] {
    if (flags.other_cpu >= 0) {
      cpu_set_t cpus;
      CPU_ZERO(&cpus);
      CPU_SET(flags.other_cpu, &cpus);
      ::sched_setaffinity(0, sizeof(cpus), &cpus);
    }
    return MedianWake(ref, flags.wakes);
  };
  const int64_t nanoseconds = co_await ToThread(measure);
  std::cout << "wake_ns " << nanoseconds << std::endl;
  co_return 0;
}

bool Parse(std::string_view argument, Flags* flags) {
  if (absl::ConsumePrefix(&argument, "--poller=")) {
    flags->poller = std::string(argument);
    return true;
  }
  if (absl::ConsumePrefix(&argument, "--by=")) {
    flags->by = std::string(argument);
    return argument == "streams" || argument == "sockets" || argument == "callbacks";
  }
  if (absl::ConsumePrefix(&argument, "--wakes=")) {
    return absl::SimpleAtoi(argument, &flags->wakes) && flags->wakes > 0;
  }
  if (absl::ConsumePrefix(&argument, "--other-cpu=")) {
    return absl::SimpleAtoi(argument, &flags->other_cpu);
  }
  return false;
}

}  // namespace
}  // namespace weft

int main(int argc, char** argv) {
  weft::Flags flags;
  for (int i = 1; i < argc; ++i) {
    if (weft::Parse(argv[i], &flags)) continue;
    std::cerr << "echo_server: what is '" << argv[i] << "'?\n";
    return 2;
  }
  weft::RunOptions options;
  options.poller = flags.poller;
  try {
    return weft::Run(flags.wakes > 0 ? weft::MeasureWakes(flags) : weft::Serve(flags), options);
  } catch (const weft::ValueError& error) {
    std::cerr << error.what() << "\n";
    return 1;
  }
}

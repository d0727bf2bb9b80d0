// Copyright 2026 The weft Authors.
// SPDX-License-Identifier: Apache-2.0

// The clients of an echo server that is measured, by hand and always over epoll, so that they
// are the same whatever the server is made of. Each has one request under way. What the server
// uses is read from the kernel: it need not know that it is measured. Prints one line of
// "name value" pairs.
//
//   load PORT PID CPU SYSCALL_EVENT echo CONNECTIONS BYTES SECONDS
//   load PORT PID CPU SYSCALL_EVENT accept CLIENTS SECONDS
//   load PORT PID CPU SYSCALL_EVENT idle CONNECTIONS
//
// CPU is the processor to run on. SYSCALL_EVENT is the number of the kernel's event "a system
// call begins", or -1; of the server's first thread they are counted, of its CPU time all.

#include <linux/perf_event.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <sched.h>
#include <sys/epoll.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <string>
#include <string_view>
#include <vector>

namespace {

constexpr double kWarmUpSeconds = 0.3;

[[noreturn]] void Die(const char* what) {
  std::fprintf(stderr, "load: %s: %s\n", what, std::strerror(errno));
  std::exit(1);
}

int64_t Nanoseconds() {
  timespec time;
  ::clock_gettime(CLOCK_MONOTONIC, &time);
  return time.tv_sec * int64_t{1'000'000'000} + time.tv_nsec;
}

int Connect(int port) {
  const int fd = ::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
  if (fd < 0) Die("socket");
  const int on = 1;
  ::setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &on, sizeof(on));
  // Leaves nothing in TIME_WAIT, of which there would be ten thousands.
  const linger reset = {1, 0};
  ::setsockopt(fd, SOL_SOCKET, SO_LINGER, &reset, sizeof(reset));
  sockaddr_in address = {};
  address.sin_family = AF_INET;
  address.sin_port = htons(static_cast<uint16_t>(port));
  address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  if (::connect(fd, reinterpret_cast<sockaddr*>(&address), sizeof(address)) < 0) Die("connect");
  return fd;
}

void Send(int fd, const std::string& bytes) {
  size_t sent = 0;
  while (sent < bytes.size()) {
    const ssize_t count = ::send(fd, bytes.data() + sent, bytes.size() - sent, MSG_NOSIGNAL);
    if (count < 0) Die("send");
    sent += static_cast<size_t>(count);
  }
}

// What the server has used, and what the clients had done by then.
struct Sample {
  int64_t cpu = 0;
  int64_t syscalls = 0;
  int64_t requests = 0;
  int64_t time = 0;
};

// The server's process, seen from outside.
class Server {
 public:
  Server(pid_t pid, int64_t syscall_event) : pid_(pid) {
    if (const int error = ::clock_getcpuclockid(pid, &clock_); error != 0) {
      errno = error;
      Die("the server's clock");
    }
    if (syscall_event < 0) return;
    perf_event_attr attributes = {};
    attributes.type = PERF_TYPE_TRACEPOINT;
    attributes.size = sizeof(attributes);
    attributes.config = static_cast<uint64_t>(syscall_event);
    // By the kernel, and without making them slower.
    counter_ = static_cast<int>(::syscall(SYS_perf_event_open, &attributes, pid, -1, -1, 0));
  }

  int64_t CpuNanoseconds() const {
    timespec time;
    if (::clock_gettime(clock_, &time) < 0) Die("the server's CPU time");
    return time.tv_sec * int64_t{1'000'000'000} + time.tv_nsec;
  }

  // -1: not counted.
  int64_t Syscalls() const {
    int64_t count = -1;
    if (counter_ < 0 || ::read(counter_, &count, sizeof(count)) != sizeof(count)) return -1;
    return count;
  }

  int64_t ResidentBytes() const {
    const std::string path = "/proc/" + std::to_string(pid_) + "/statm";
    long pages = 0;
    std::FILE* file = std::fopen(path.c_str(), "re");
    if (file == nullptr || std::fscanf(file, "%*d %ld", &pages) != 1) Die(path.c_str());
    std::fclose(file);
    return int64_t{pages} * ::sysconf(_SC_PAGESIZE);
  }

 private:
  const pid_t pid_;
  clockid_t clock_;
  int counter_ = -1;
};

class Load {
 public:
  Load(int port, Server server)
      : port_(port), epoll_(::epoll_create1(EPOLL_CLOEXEC)), server_(server) {}

  void Echo(int connections, size_t size, double seconds) {
    request_.assign(size, 'x');
    reply_.resize(size);
    for (int i = 0; i < connections; ++i) clients_.push_back({Connect(port_), 0, 0});
    for (Client& client : clients_) {
      Watch(client.fd, &client);
      Ask(&client);
    }
    Run(seconds, /*reconnects=*/false);
    Report();
  }

  void Accept(int clients, double seconds) {
    request_.assign(64, 'x');
    reply_.resize(64);
    clients_.resize(static_cast<size_t>(clients));
    for (Client& client : clients_) Reconnect(&client);
    Run(seconds, /*reconnects=*/true);
    Report();
  }

  void Idle(int connections) {
    const int64_t before = server_.ResidentBytes();
    for (int i = 0; i < connections; ++i) {
      const int fd = Connect(port_);
      clients_.push_back({fd, 0, 0});
      Send(fd, "x");
      char byte;
      if (::recv(fd, &byte, 1, 0) != 1) Die("recv");
    }
    const int64_t after = server_.ResidentBytes();
    std::printf("bytes %.1f\n", static_cast<double>(after - before) / connections);
  }

 private:
  struct Client {
    int fd;
    size_t received;
    int64_t asked_at;
  };

  void Watch(int fd, Client* client) {
    epoll_event event = {};
    event.events = EPOLLIN;
    event.data.ptr = client;
    if (::epoll_ctl(epoll_, EPOLL_CTL_ADD, fd, &event) < 0) Die("epoll_ctl");
  }

  void Ask(Client* client) {
    client->received = 0;
    client->asked_at = Nanoseconds();
    Send(client->fd, request_);
  }

  void Reconnect(Client* client) {
    client->fd = Connect(port_);
    Watch(client->fd, client);
    Ask(client);
  }

  // Serves the clients for so long, and samples the server after the warm-up and at the
  // end.
  void Run(double seconds, bool reconnects) {
    const int64_t start = Nanoseconds();
    const auto after = [start](double by) { return start + static_cast<int64_t>(by * 1e9); };
    const int64_t moments[] = {after(kWarmUpSeconds), after(kWarmUpSeconds + seconds)};
    std::vector<epoll_event> events(256);
    while (samples_.size() < 2) {
      if (const int64_t now = Nanoseconds(); now >= moments[samples_.size()]) {
        samples_.push_back({server_.CpuNanoseconds(), server_.Syscalls(), requests_, now});
      }
      const int count = ::epoll_wait(epoll_, events.data(), static_cast<int>(events.size()), 10);
      for (int i = 0; i < count; ++i) {
        auto* client = static_cast<Client*>(events[static_cast<size_t>(i)].data.ptr);
        const ssize_t got =
            ::recv(client->fd, reply_.data(), request_.size() - client->received, MSG_DONTWAIT);
        if (got < 0 && errno == EAGAIN) continue;
        if (got <= 0) Die("recv");
        client->received += static_cast<size_t>(got);
        if (client->received < request_.size()) continue;
        ++requests_;
        if (samples_.size() == 1) latencies_.push_back(Nanoseconds() - client->asked_at);
        if (reconnects) {
          ::close(client->fd);
          Reconnect(client);
        } else {
          Ask(client);
        }
      }
    }
  }

  void Report() {
    const Sample& a = samples_[0];
    const Sample& b = samples_[1];
    const double requests = std::max<double>(1, static_cast<double>(b.requests - a.requests));
    const auto percentile = [this](double share) {
      if (latencies_.empty()) return 0.0;
      const auto at = static_cast<size_t>(share * static_cast<double>(latencies_.size() - 1));
      std::nth_element(latencies_.begin(), latencies_.begin() + static_cast<long>(at),
                       latencies_.end());
      return static_cast<double>(latencies_[at]);
    };
    std::printf("rate %.1f cpu_us %.4f calls %.4f p50_us %.1f p99_us %.1f\n",
                requests / (static_cast<double>(b.time - a.time) / 1e9),
                static_cast<double>(b.cpu - a.cpu) / requests / 1e3,
                a.syscalls < 0 ? -1 : static_cast<double>(b.syscalls - a.syscalls) / requests,
                percentile(0.5) / 1e3, percentile(0.99) / 1e3);
  }

  const int port_;
  const int epoll_;
  const Server server_;
  std::string request_;
  std::vector<char> reply_;
  std::vector<Client> clients_;
  std::vector<Sample> samples_;
  std::vector<int64_t> latencies_;
  int64_t requests_ = 0;
};

}  // namespace

int main(int argc, char** argv) {
  const std::string_view what = argc > 5 ? argv[5] : "";
  const auto number = [&](int i) { return i < argc ? std::atof(argv[i]) : 0; };
  const auto whole = [&](int i) { return static_cast<int>(number(i)); };
  const bool is_complete = (what == "echo" && argc == 9) || (what == "accept" && argc == 8) ||
                           (what == "idle" && argc == 7);
  if (!is_complete) {
    std::fprintf(stderr, "load: for bench/measure.py; see the top of its source\n");
    return 2;
  }
  cpu_set_t cpus;
  CPU_ZERO(&cpus);
  CPU_SET(whole(3), &cpus);
  ::sched_setaffinity(0, sizeof(cpus), &cpus);

  Load load(whole(1), Server(whole(2), whole(4)));
  if (what == "echo") load.Echo(whole(6), static_cast<size_t>(number(7)), number(8));
  if (what == "accept") load.Accept(whole(6), number(7));
  if (what == "idle") load.Idle(whole(6));
  std::fflush(stdout);
  std::_Exit(0);
}

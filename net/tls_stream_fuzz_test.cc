// Copyright 2026 The weft Authors.
// SPDX-License-Identifier: Apache-2.0

// Two ends that talk by TLS, and somebody in between who changes what they send, cuts it
// into pieces, drops and adds bytes, and ends it early. Whatever he does, each end reads the
// beginning of what the other has written, and nothing else; both come to an end, and leave
// nothing. Who changes nothing is not noticed.
//
// Keys and random numbers differ from run to run, so not every finding comes again.
//
//   number of changes | changes, five bytes each | number of pieces | pieces | text

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/time/time.h"
#include "weft/core/clock.h"
#include "weft/core/no_throw.h"
#include "weft/core/sleep.h"
#include "weft/core/task.h"
#include "weft/core/timeout.h"
#include "weft/loop/event_loop.h"
#include "weft/net/connection.h"
#include "weft/net/socket.h"
#include "weft/net/test_certificates.h"
#include "weft/net/tls_context.h"
#include "weft/testing/fuzz_input.h"

namespace weft {
namespace {

constexpr char kHost[] = "server.example";

// What does not change from one input to the next.
struct Fixture {
  Fixture() {
    LoopOptions options;
    options.environment.clock = &clock;
    loop = EventLoop::Create(options).value();
    const TestAuthority authority;
    const TestCertificate certificate = authority.Issue(kHost);
    TlsServerOptions server_options;
    server_options.certificate_pem = certificate.certificate;
    server_options.private_key_pem = certificate.key;
    server = TlsContext::ForServer(server_options).value();
    TlsClientOptions client_options;
    client_options.ca_pem = authority.certificate();
    client_options.session_cache_size = 0;  // Each input as if it were the first.
    client = TlsContext::ForClient(client_options).value();
  }

  VirtualClock clock;
  std::unique_ptr<EventLoop> loop;
  TlsContext server;
  TlsContext client;
};

// Something that happens when so many bytes have passed in one direction.
struct Change {
  enum Kind { kFlip, kDrop, kInsert, kEnd, kReset };

  size_t place;
  Kind kind;
  uint8_t byte;
};

// One input.
class Run {
 public:
  Run(FuzzInput input, const Fixture& fixture) : fixture_(fixture) {
    for (size_t left = input.Below(6); left > 0; --left) {
      std::vector<Change>& direction = changes_[input.Below(2)];
      const size_t place = input.Below(8192);
      const auto kind = static_cast<Change::Kind>(input.Below(5));
      direction.push_back({place, kind, input.Byte()});
      is_changed_ = true;
    }
    for (std::vector<Change>& direction : changes_) {
      std::stable_sort(direction.begin(), direction.end(),
                       [](const Change& a, const Change& b) { return a.place < b.place; });
    }
    pieces_ = input.Take(input.Below(64));
    text_ = input.Rest();
  }

  Coro<void> Main() {
    std::pair<Socket, Socket> near = Socket::Pair().value(), far = Socket::Pair().value();
    Connection client = ToConnection(std::move(near.first));
    Connection server = ToConnection(std::move(far.second));
    Connection to_client = ToConnection(std::move(near.second));
    Connection to_server = ToConnection(std::move(far.first));
    Task<void> serving = CreateTask(Serve(std::move(server)));
    Task<void> there = CreateTask(Pass(to_client.reader, to_server.writer, changes_[0]));
    Task<void> back = CreateTask(Pass(to_server.reader, to_client.writer, changes_[1]));
    co_await Talk(std::move(client));
    co_await serving;
    co_await there;
    co_await back;
    FuzzCheck(is_changed_ || (is_served_ && is_answered_), "it failed though nothing was changed");
  }

 private:
  // Passes on what comes, with the changes.
  Coro<void> Pass(StreamReader& from, StreamWriter& to, const std::vector<Change>& changes) {
    auto next = changes.begin();
    size_t passed = 0, piece = 0;
    while (true) {
      absl::StatusOr<absl::Span<const char>> unread = co_await from.Fill();
      if (!unread.ok()) co_return to.Abort();
      if (unread->empty()) break;
      std::string_view data(unread->data(), unread->size());
      if (!pieces_.empty()) {
        const auto size = static_cast<uint8_t>(pieces_[piece++ % pieces_.size()]);
        data = data.substr(0, 1 + static_cast<size_t>(size) * (1 + passed / 1024));
      }
      std::string changed(data);
      for (; next != changes.end() && next->place < passed + data.size(); ++next) {
        const size_t at = next->place - passed;
        switch (next->kind) {
          case Change::kFlip:
            if (at < changed.size()) changed[at] = static_cast<char>(changed[at] ^ next->byte);
            break;
          case Change::kDrop:
            if (at < changed.size()) changed.erase(at, 1 + next->byte % 8);
            break;
          case Change::kInsert:
            changed.insert(std::min(at, changed.size()), 1, static_cast<char>(next->byte));
            break;
          case Change::kEnd:
            to.Write(std::string_view(changed).substr(0, at));
            co_return to.Close();
          case Change::kReset:
            co_return to.Abort();
        }
      }
      to.Write(changed);
      passed += data.size();
      from.Consume(data.size());
      absl::Status sent = co_await to.Drain();
      if (!sent.ok()) co_return;
      co_await Yield();  // Each piece by itself.
    }
    to.WriteEof();
  }

  // Adds what an end has read to what it had: the beginning of the text.
  void Got(size_t* position, std::string_view data) const {
    FuzzCheck(text_.substr(*position, data.size()) == data, "it is not what was written");
    *position += data.size();
  }

  // Sends back what it reads.
  Coro<void> Serve(Connection connection) {
    absl::Status secured = co_await connection.writer.StartTls(fixture_.server);
    if (!secured.ok()) co_return;
    size_t position = 0;
    while (true) {
      absl::StatusOr<absl::Span<const char>> unread = co_await connection.reader.Fill();
      if (!unread.ok() || unread->empty()) {
        is_served_ = unread.ok() && position == text_.size();
        break;
      }
      const std::string_view data(unread->data(), unread->size());
      Got(&position, data);
      connection.writer.Write(data);
      connection.reader.Consume(data.size());
    }
    connection.writer.Close();
    absl::Status closed = co_await connection.writer.WaitClosed();
    closed.IgnoreError();
  }

  Coro<void> Talk(Connection connection) {
    StartTlsOptions options;
    options.server_hostname = kHost;
    absl::Status secured = co_await connection.writer.StartTls(fixture_.client, options);
    if (!secured.ok()) co_return;
    connection.writer.Write(text_);
    if (connection.writer.CanWriteEof()) connection.writer.WriteEof();
    size_t position = 0;
    // Somebody may drop what both wait for.
    Outcome<void> read =
        co_await NoThrow(WithTimeout(absl::Minutes(10), ReadAll(connection.reader, &position)));
    is_answered_ = read.has_value() && position == text_.size();
    connection.writer.Close();
    absl::Status closed = co_await connection.writer.WaitClosed();
    closed.IgnoreError();
  }

  Coro<void> ReadAll(StreamReader& reader, size_t* position) {
    while (true) {
      absl::StatusOr<std::string> data = co_await reader.Read(4096);
      if (!data.ok() || data->empty()) co_return;
      Got(position, *data);
    }
  }

  const Fixture& fixture_;
  std::vector<Change> changes_[2];  // There, and back.
  bool is_changed_ = false;
  std::string_view pieces_;
  std::string_view text_;
  bool is_served_ = false;
  bool is_answered_ = false;
};

}  // namespace
}  // namespace weft

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  static weft::Fixture& fixture = *new weft::Fixture;
  weft::Run run(weft::FuzzInput(data, size), fixture);
  fixture.loop->RunUntilComplete(run.Main());
  for (int i = 0; i < 3; ++i) fixture.loop->RunOnce(absl::ZeroDuration());
  weft::FuzzCheck(fixture.loop->slab_pool().outstanding_count() == 0, "a buffer is lost");
  return 0;
}

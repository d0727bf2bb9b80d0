// Copyright 2026 The weft Authors.
// SPDX-License-Identifier: Apache-2.0

// Clients of weft and servers that are not: `openssl s_server` and Python's ssl module,
// where they are installed. (examples/tls_echo_test.py has it the other way round.)

#include <fcntl.h>
#include <signal.h>
#include <spawn.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cstdio>
#include <cstdlib>
#include <fstream>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "weft/loop/run.h"
#include "weft/net/test_tls.h"
#include "weft/testing/weft_test.h"

extern char** environ;

namespace weft {
namespace {

// The path of a program; empty if it is not installed.
std::string Find(const std::string& name) {
  const char* const path = std::getenv("PATH");
  for (const std::string_view folder : absl::StrSplit(path == nullptr ? "" : path, ':')) {
    std::string file = absl::StrCat(folder, "/", name);
    if (!folder.empty() && ::access(file.c_str(), X_OK) == 0) return file;
  }
  return std::string();
}

// Then the test shows nothing, and says so.
bool IsMissing(const std::string& name) {
  if (!Find(name).empty()) return false;
  std::printf("not tested: %s is not installed\n", name.c_str());
  return true;
}

// A program that is killed at the end.
class Child {
 public:
  explicit Child(std::vector<std::string> arguments) {
    std::vector<char*> argv;
    for (std::string& argument : arguments) argv.push_back(argument.data());
    argv.push_back(nullptr);
    int fds[2];
    EXPECT_EQ(::pipe2(fds, O_CLOEXEC), 0);
    posix_spawn_file_actions_t actions;
    ::posix_spawn_file_actions_init(&actions);
    ::posix_spawn_file_actions_adddup2(&actions, fds[1], 1);
    ::posix_spawn_file_actions_adddup2(&actions, fds[1], 2);
    ::posix_spawn_file_actions_addopen(&actions, 0, "/dev/null", O_RDONLY, 0);
    EXPECT_EQ(::posix_spawn(&pid_, argv[0], &actions, nullptr, argv.data(), environ), 0);
    ::posix_spawn_file_actions_destroy(&actions);
    ::close(fds[1]);
    output_ = ::fdopen(fds[0], "r");
  }
  ~Child() {
    ::kill(pid_, SIGKILL);
    ::waitpid(pid_, nullptr, 0);
    std::fclose(output_);
  }

  // The next line of its output that begins with `text`, as soon as there is one; empty
  // if it ends before.
  std::string LineWith(const std::string& text) {
    char line[4096];
    while (std::fgets(line, sizeof(line), output_) != nullptr) {
      if (std::string_view(line).substr(0, text.size()) == text) return line;
    }
    return std::string();
  }

 private:
  pid_t pid_ = 0;
  std::FILE* output_ = nullptr;
};

// The port in "... 127.0.0.1:12345".
uint16_t PortIn(const std::string& line) {
  return static_cast<uint16_t>(std::atoi(line.c_str() + line.rfind(':') + 1));
}

class TlsPeersTest : public TlsTest {
 protected:
  static std::string File(const std::string& name, const std::string& content) {
    const std::string path = absl::StrCat(::testing::TempDir(), "/", name);
    std::ofstream(path) << content;
    return path;
  }
  std::vector<std::string> OpenSslServer(std::vector<std::string> more) const {
    const TestCertificate own = authority_.Issue("localhost");
    std::vector<std::string> command = {Find("openssl"), "s_server",
                                        "-accept",       "127.0.0.1:0",
                                        "-cert",         File("s.pem", own.certificate),
                                        "-key",          File("s.key", own.key)};
    command.insert(command.end(), more.begin(), more.end());
    return command;
  }

  ConnectOptions Options(const TlsContext& tls) const {
    ConnectOptions options;
    options.tls = &tls;
    options.server_hostname = "localhost";
    options.timeout = absl::Seconds(30);
    return options;
  }
};

WEFT_TEST_F_IN_REAL_TIME(TlsPeersTest, OpenSslServesUs) {
  if (IsMissing("openssl")) co_return;
  for (const std::string version : {"-tls1_2", "-tls1_3"}) {
    // It answers each line, reversed.
    Child server(OpenSslServer({"-rev", version, "-alpn", "reverse"}));
    const std::string accept = server.LineWith("ACCEPT");
    EXPECT_NE(accept, "");
    TlsClientOptions client = ClientTls();
    client.alpn_protocols = {"other", "reverse"};
    const TlsContext tls = TlsContext::ForClient(client).value();
    for (int i = 0; i < 3; ++i) {
      absl::StatusOr<Connection> connection =
          co_await OpenConnection("127.0.0.1", PortIn(accept), Options(tls));
      EXPECT_TRUE(connection.ok()) << connection.status();
      if (!connection.ok()) co_return;
      connection->writer.Write("stressed\n");
      absl::StatusOr<std::string> line = co_await connection->reader.ReadLine();
      EXPECT_EQ(line.value_or("?"), "desserts\n") << line.status();
      const TlsInfo info = *connection->writer.tls_info();
      EXPECT_EQ(info.version, version == "-tls1_2" ? "TLSv1.2" : "TLSv1.3");
      EXPECT_EQ(info.alpn_protocol, "reverse");
      EXPECT_EQ(info.is_resumed, i > 0);
      connection->writer.Close();
      absl::Status closed = co_await connection->writer.WaitClosed();
      EXPECT_TRUE(closed.ok()) << closed;
    }
  }
}

WEFT_TEST_F_IN_REAL_TIME(TlsPeersTest, OpenSslAsksForACertificate) {
  if (IsMissing("openssl")) co_return;
  const TestCertificate own = authority_.Issue("client");
  Child server(OpenSslServer({"-rev", "-Verify", "3", "-verify_return_error", "-CAfile",
                              File("ca.pem", authority_.certificate())}));
  const std::string accept = server.LineWith("ACCEPT");
  TlsClientOptions with = ClientTls();
  with.certificate_pem = own.certificate;
  with.private_key_pem = own.key;
  const TlsContext known = TlsContext::ForClient(with).value(), unknown = ClientContext();

  absl::StatusOr<Connection> connection =
      co_await OpenConnection("127.0.0.1", PortIn(accept), Options(known));
  EXPECT_TRUE(connection.ok()) << connection.status();
  connection->writer.Write("drawer\n");
  absl::StatusOr<std::string> line = co_await connection->reader.ReadLine();
  EXPECT_EQ(line.value_or("?"), "reward\n") << line.status();
  connection->writer.Close();
  absl::Status closed = co_await connection->writer.WaitClosed();

  absl::StatusOr<Connection> refused =
      co_await OpenConnection("127.0.0.1", PortIn(accept), Options(unknown));
  absl::Status told = refused.status();
  if (told.ok()) {
    absl::StatusOr<std::string> got = co_await refused->reader.Read(1);
    told = got.status();
  }
  EXPECT_EQ(told.code(), absl::StatusCode::kPermissionDenied) << told;
}

// Bulk, both ways at once, and a goodbye that Python counts as one.
WEFT_TEST_F_IN_REAL_TIME(TlsPeersTest, PythonServesUs) {
  if (IsMissing("python3")) co_return;
  const TestCertificate own = authority_.Issue("localhost");
  const std::string script = File("server.py", R"(
import asyncio, ssl, sys
async def echo(reader, writer):
    while True:
        data = await reader.read(100000)
        if not data:
            break
        writer.write(data)
        await writer.drain()
    writer.close()
    await writer.wait_closed()
    print("ended well", flush=True)
async def main():
    context = ssl.create_default_context(ssl.Purpose.CLIENT_AUTH)
    context.load_cert_chain(sys.argv[1])
    server = await asyncio.start_server(echo, "127.0.0.1", 0, ssl=context)
    print("listening on 127.0.0.1:%d" % server.sockets[0].getsockname()[1], flush=True)
    await server.serve_forever()
asyncio.run(main())
)");
  Child server({Find("python3"), script, File("both.pem", own.certificate + own.key)});
  const std::string listening = server.LineWith("listening on ");
  EXPECT_NE(listening, "");
  const TlsContext tls = ClientContext();
  absl::StatusOr<Connection> connection =
      co_await OpenConnection("127.0.0.1", PortIn(listening), Options(tls));
  EXPECT_TRUE(connection.ok()) << connection.status();
  if (!connection.ok()) co_return;
  const std::string data = Pattern(5'000'000);
  connection->writer.Write(data);

  absl::StatusOr<std::string> got =
      co_await connection->reader.ReadExactly(static_cast<int64_t>(data.size()));

  EXPECT_TRUE(got.ok() && *got == data) << got.status();
  connection->writer.Close();
  const absl::Status closed = co_await connection->writer.WaitClosed();
  EXPECT_TRUE(closed.ok()) << closed;
  EXPECT_NE(server.LineWith("ended well"), "");
}

}  // namespace
}  // namespace weft

// Copyright 2026 The weft Authors.
// SPDX-License-Identifier: Apache-2.0

// Runs the examples on Windows, as a user does. (Elsewhere tests in Python do more of it.)

#include <cstdlib>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_replace.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "weft/loop/run.h"
#include "weft/net/test_net.h"
#include "weft/process/process.h"
#include "weft/testing/weft_test.h"

namespace weft {
namespace {

using ::testing::AllOf;
using ::testing::EndsWith;
using ::testing::HasSubstr;

// Where the program is that the test has in its data.
std::string Path(const std::string& name) {
  const char* folder = std::getenv("TEST_SRCDIR");
  const char* workspace = std::getenv("TEST_WORKSPACE");
  EXPECT_TRUE(folder != nullptr && workspace != nullptr) << "run it by Bazel";
  return absl::StrReplaceAll(absl::StrCat(folder, "/", workspace, "/examples/", name, ".exe"),
                             {{"/", "\\"}});
}

Coro<Process> Start(std::string name, std::vector<std::string> arguments = {}) {
  ProcessOptions options;
  options.std_in = Stdio::kDevNull;
  options.std_out = Stdio::kPipe;
  options.std_err = Stdio::kPipe;
  arguments.insert(arguments.begin(), Path(name));
  Argv argv(std::move(arguments));
  absl::StatusOr<Process> process = co_await CreateSubprocessExec(std::move(argv), options);
  EXPECT_TRUE(process.ok()) << process.status();
  co_return *std::move(process);
}

// Runs it to its end: what it wrote. Lines end as they do elsewhere.
Coro<ProcessOutput> Finish(std::string name, std::vector<std::string> arguments = {}) {
  Process process = co_await Start(std::move(name), std::move(arguments));
  ProcessOutput output = Get(co_await process.Communicate());
  for (std::string* text : {&output.std_out, &output.std_err}) {
    *text = absl::StrReplaceAll(*text, {{"\r\n", "\n"}});
  }
  co_return output;
}

// Reads what a server says when it has begun: its port.
Coro<std::string> PortOf(Process* server) {
  std::string line = Get(co_await server->std_out().ReadLine());
  EXPECT_THAT(line, HasSubstr("listening on "));
  while (!line.empty() && (line.back() < '0' || line.back() > '9')) line.pop_back();
  co_return line.substr(line.rfind(':') + 1);
}

WEFT_TEST_IN_REAL_TIME(ProgramsTest, TheTourGoesAllTheWay) {
  const std::vector<std::string> arguments = {"--clients=20", "--rush=200", "--calm=700"};
  ProcessOutput tour = co_await Finish("tour", arguments);
  EXPECT_EQ(tour.returncode, 0);
  EXPECT_EQ(tour.std_err, "");
  EXPECT_THAT(tour.std_out,
              AllOf(HasSubstr("listening on 127.0.0.1:"),
                    HasSubstr("who was there has been answered"), EndsWith("All is well.\n")));
}

WEFT_TEST_IN_REAL_TIME(ProgramsTest, TracesAreTraced) {
  ProcessOutput traces = co_await Finish("traces");
  EXPECT_EQ(traces.returncode, 0);
  EXPECT_NE(traces.std_out, "");
}

WEFT_TEST_IN_REAL_TIME(ProgramsTest, AClientTalksToAServer) {
  const std::vector<std::string> on_any_port = {"--port=0"};
  Process server = co_await Start("echo_server", on_any_port);
  std::string port = co_await PortOf(&server);
  std::string flag = absl::StrCat("--port=", port);
  const std::vector<std::string> words = {flag, "hello", "world"};
  ProcessOutput client = co_await Finish("echo_client", words);
  EXPECT_EQ(client.returncode, 0) << client.std_err;
  EXPECT_EQ(client.std_out, "hello\nworld\n");
  WEFT_EXPECT_OK(server.Kill());
  co_await server.Wait();
}

WEFT_TEST_IN_REAL_TIME(ProgramsTest, WrongFlagsAreNamed) {
  const std::vector<std::string> arguments = {"--poller=magic"};
  ProcessOutput client = co_await Finish("echo_client", arguments);
  EXPECT_EQ(client.returncode, 2);
  EXPECT_THAT(client.std_err, HasSubstr("magic"));
}

}  // namespace
}  // namespace weft

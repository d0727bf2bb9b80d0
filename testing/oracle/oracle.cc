// Copyright 2026 The weft Authors.
// SPDX-License-Identifier: Apache-2.0

#include "weft/testing/oracle/oracle.h"

#include <fcntl.h>
#include <sys/wait.h>
#include <unistd.h>

#include <csignal>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"

namespace weft::oracle {
namespace {

// Where tests and `bazel run` find it.
constexpr char kServer[] = "testing/oracle/oracle_server.py";

// One that the server has no more of than it is to have.
bool OpenPipe(int (&ends)[2]) {
  if (pipe(ends) != 0) return false;
  for (const int end : ends) fcntl(end, F_SETFD, FD_CLOEXEC);
  return true;
}

}  // namespace

absl::StatusOr<std::unique_ptr<Oracle>> Oracle::Start() {
  std::signal(SIGPIPE, SIG_IGN);  // The server may be gone: Read() says so.
  int questions[2];
  int answers[2];
  if (!OpenPipe(questions) || !OpenPipe(answers)) {
    return absl::InternalError("no pipe to talk to python3");
  }
  const pid_t process = fork();
  if (process == 0) {
    dup2(questions[0], STDIN_FILENO);
    dup2(answers[1], STDOUT_FILENO);
    execlp("python3", "python3", "-B", "-E", "-s", kServer, nullptr);
    _exit(127);
  }
  close(questions[0]);
  close(answers[1]);
  std::unique_ptr<Oracle> oracle(new Oracle(process, questions[1], answers[0]));
  oracle->AskTrace("proc main {\n}\n");
  if (!oracle->Read().ok()) {
    return absl::NotFoundError("no python3 of version 3.11 or later was found");
  }
  return oracle;
}

Oracle::~Oracle() {
  close(to_);
  close(from_);
  waitpid(process_, nullptr, 0);
}

void Oracle::AskRandom(int64_t seed, int size) {
  Write(absl::StrCat("generate ", seed, " ", size, "\n"));
}

void Oracle::AskTrace(std::string_view program) {
  Write(absl::StrCat("trace ", program.size(), "\n"));
  Write(program);
}

absl::StatusOr<Oracle::Answer> Oracle::Read() {
  absl::StatusOr<std::string> head = ReadLine();
  if (!head.ok()) return head.status();
  const std::vector<std::string> words = absl::StrSplit(*head, ' ');
  size_t program_size = 0;
  size_t trace_size = 0;
  if (words.size() != 3 || !absl::SimpleAtoi(words[1], &program_size) ||
      !absl::SimpleAtoi(words[2], &trace_size)) {
    return absl::InternalError(absl::StrCat("the oracle said ", *head));
  }
  Answer answer;
  answer.is_valid = words[0] == "ok";
  if (!Read(program_size, &answer.program) || !Read(trace_size, &answer.trace)) {
    return absl::InternalError("the oracle stopped in the midst of an answer");
  }
  return answer;
}

void Oracle::Write(std::string_view text) {
  while (!text.empty()) {
    const ssize_t written = write(to_, text.data(), text.size());
    if (written <= 0) return;
    text.remove_prefix(static_cast<size_t>(written));
  }
}

bool Oracle::Read(size_t count, std::string* text) {
  while (buffer_.size() < count) {
    char chunk[65536];
    const ssize_t got = read(from_, chunk, sizeof(chunk));
    if (got <= 0) return false;
    buffer_.append(chunk, static_cast<size_t>(got));
  }
  *text = buffer_.substr(0, count);
  buffer_.erase(0, count);
  return true;
}

absl::StatusOr<std::string> Oracle::ReadLine() {
  std::string line;
  std::string byte;
  while (Read(1, &byte)) {
    if (byte == "\n") return line;
    line += byte;
  }
  return absl::InternalError("the oracle has stopped");
}

std::string DescribeDifference(std::string_view expected, std::string_view actual) {
  const std::vector<std::string_view> wanted = absl::StrSplit(expected, '\n');
  const std::vector<std::string_view> got = absl::StrSplit(actual, '\n');
  for (size_t i = 0;; ++i) {
    const std::string_view want_line = i < wanted.size() ? wanted[i] : "(the end)";
    const std::string_view got_line = i < got.size() ? got[i] : "(the end)";
    if (want_line != got_line) {
      return absl::StrCat("line ", i + 1, " of the trace\n  CPython: ", want_line,
                          "\n  weft:    ", got_line, "\n");
    }
    if (i >= wanted.size()) return "no difference\n";
  }
}

}  // namespace weft::oracle

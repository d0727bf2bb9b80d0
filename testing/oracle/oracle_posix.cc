// Copyright 2026 The weft Authors.
// SPDX-License-Identifier: Apache-2.0

#include <fcntl.h>
#include <sys/wait.h>
#include <unistd.h>

#include <csignal>

#include "absl/status/status.h"
#include "weft/testing/oracle/oracle.h"

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

}  // namespace weft::oracle

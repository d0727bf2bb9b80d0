// Copyright 2026 The weft Authors.
// SPDX-License-Identifier: Apache-2.0

// Whether io_uring is to be had, and if not, whose decision that is: the kernel's age,
// the system's administrator, or a sandbox.

#include <errno.h>
#include <sys/mman.h>
#include <sys/utsname.h>

#include <cstdio>
#include <cstring>
#include <string>

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "weft/poller/io_uring_poller.h"

namespace weft {

namespace {

using internal::Uring;
using internal::UringBuffers;

namespace uring = internal::uring;

std::string Release() {
  utsname names;
  return ::uname(&names) == 0 ? names.release : "?";
}

// What kernel.io_uring_disabled says; 0 if there is no such thing.
int DisabledBySysctl() {
  int value = 0;
  if (std::FILE* file = std::fopen("/proc/sys/kernel/io_uring_disabled", "re")) {
    if (std::fscanf(file, "%d", &value) != 1) value = 0;
    std::fclose(file);
  }
  return value;
}

absl::Status Reason(int error) {
  switch (error) {
    case ENOSYS:
      return absl::UnimplementedError(
          absl::StrCat("this kernel (", Release(), ") has no io_uring, or a sandbox hides it"));
    case EPERM:
    case EACCES: {
      const int disabled = DisabledBySysctl();
      if (disabled != 0) {
        return absl::PermissionDeniedError(absl::StrCat(
            "the administrator has switched io_uring off: sysctl kernel.io_uring_disabled is ",
            disabled,
            disabled == 1 ? " (only for processes with CAP_SYS_ADMIN or of the group "
                            "kernel.io_uring_group)"
                          : ""));
      }
      return absl::PermissionDeniedError(
          "io_uring is forbidden here: by a seccomp filter, as containers have one by default, or "
          "by a security module");
    }
    case EINVAL:
      return absl::UnimplementedError(absl::StrCat(
          "this kernel (", Release(), ") is too old for the io_uring poller, which needs 6.1"));
    case ENOMEM:
      return absl::ResourceExhaustedError(
          "no memory for io_uring's rings, or more than RLIMIT_MEMLOCK allows (ulimit -l)");
    case EMFILE:
    case ENFILE:
      return absl::ResourceExhaustedError(
          absl::StrCat("no descriptor for io_uring: ", std::strerror(error)));
    default:
      return absl::UnavailableError(absl::StrCat("io_uring does not work: ", std::strerror(error)));
  }
}

// A kernel may know io_uring and refuse some of it: a sandbox that plays the kernel.
absl::Status CheckOperations(Uring* ring) {
  uring::Probe probe = {};
  if (const int error = ring->Register(uring::kRegisterProbe, &probe, 64)) return Reason(-error);
  for (const uring::Op op :
       {uring::kOpNop, uring::kOpFsync, uring::kOpPollAdd, uring::kOpSendMsg, uring::kOpRecvMsg,
        uring::kOpAccept, uring::kOpAsyncCancel, uring::kOpConnect, uring::kOpRead, uring::kOpWrite,
        uring::kOpSend, uring::kOpRecv}) {
    if (op >= probe.ops_len || (probe.ops[op].flags & uring::kOpSupported) == 0) {
      return absl::UnimplementedError(
          absl::StrCat("this io_uring lacks operation ", static_cast<int>(op)));
    }
  }
  return absl::OkStatus();
}

// The whole way there and back: io_uring_enter may be forbidden by itself.
int DoNothingOnce(Uring* ring) {
  uring::Sqe* sqe = ring->NextSqe();
  sqe->opcode = uring::kOpNop;
  Uring::Wait wait;
  wait.count = 1;
  if (const int error = ring->Enter(wait)) return error;
  return ring->Peek() != nullptr ? 0 : -EIO;
}

}  // namespace

absl::Status ProbeIoUring() {
  internal::UringOptions options;
  options.sq_entries = 4;
  options.cq_entries = 8;
  Uring ring;
  if (const int error = ring.Open(options)) return Reason(-error);
  absl::Status status = CheckOperations(&ring);
  if (!status.ok()) return status;
  internal::UringBufferOptions buffer_options;
  buffer_options.most = 16;
  UringBuffers buffers(buffer_options);
  if (const int error = buffers.Register(&ring)) return Reason(-error);
  const int error = DoNothingOnce(&ring);
  return error == 0 ? absl::OkStatus() : Reason(-error);
}

}  // namespace weft

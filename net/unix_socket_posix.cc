// Copyright 2026 The weft Authors.
// SPDX-License-Identifier: Apache-2.0

#include <fcntl.h>
#include <sys/socket.h>
#include <sys/types.h>
#include <sys/un.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>

#include "absl/strings/str_cat.h"
#include "weft/core/errors.h"
#include "weft/net/errno_status.h"
#include "weft/net/unix_socket.h"
#include "weft/poller/socket_api.h"
#include "weft/poller/standard_streams_posix.h"

namespace weft {

absl::StatusOr<PeerCredentials> GetPeerCredentials(const Socket& socket) {
  PeerCredentials credentials;
#ifdef SO_PEERCRED
  ucred native = {};
  size_t size = sizeof(native);
  absl::Status status = socket.GetRawOption(SOL_SOCKET, SO_PEERCRED, &native, &size);
  if (!status.ok()) return status;
  // Of a socket that is no Unix socket, or has no peer, the kernel says nobody.
  if (native.pid <= 0 && native.uid == static_cast<uid_t>(-1)) {
    return ErrnoStatus(-ENOTCONN, "get the credentials of a socket's peer");
  }
  credentials.process = native.pid;
  credentials.user = native.uid;
  credentials.group = native.gid;
#else
  uid_t user;
  gid_t group;
  if (::getpeereid(static_cast<int>(socket.handle()), &user, &group) < 0) {
    return ErrnoStatus(-errno, "get the credentials of a socket's peer");
  }
  credentials.user = user;
  credentials.group = group;
#ifdef LOCAL_PEERPID
  pid_t process;
  size_t size = sizeof(process);
  if (socket.GetRawOption(SOL_LOCAL, LOCAL_PEERPID, &process, &size).ok()) {
    credentials.process = process;
  }
#endif
#endif
  return credentials;
}

void UniqueHandle::Reset() {
  if (handle_ != kInvalidHandle) SystemSocketApi()->Close(Release());
}

namespace internal {
namespace {

void CheckCount(size_t count) {
  if (count > kMaxHandles) {
    throw ValueError(absl::StrCat("handles: ", count, " are more than ", kMaxHandles));
  }
}

size_t Words(size_t bytes) { return (bytes + sizeof(uint64_t) - 1) / sizeof(uint64_t); }

}  // namespace

SendHandlesAwaiter::SendHandlesAwaiter(const IntrusivePtr<SocketState>& socket,
                                       std::string_view data,
                                       absl::Span<const NativeHandle> handles)
    : SocketAwaiter(IntrusivePtr<SocketState>(socket)), data_(data) {
  CheckCount(handles.size());
  if (data.empty()) throw ValueError("data: descriptors go with a byte at least");
  if (handles.empty()) return;
  std::vector<int> fds;
  for (const NativeHandle handle : handles) fds.push_back(static_cast<int>(handle));
  const size_t size = fds.size() * sizeof(int);
  control_.resize(Words(CMSG_SPACE(size)));
  auto* part = reinterpret_cast<cmsghdr*>(control_.data());
  part->cmsg_level = SOL_SOCKET;
  part->cmsg_type = SCM_RIGHTS;
  part->cmsg_len = CMSG_LEN(size);
  std::memcpy(CMSG_DATA(part), fds.data(), size);
}

void SendHandlesAwaiter::Prepare() {
  piece_ = {const_cast<char*>(data_.data()), data_.size()};
  PrepareSendMsg(socket_->handle(), &piece_, 1);
  if (control_.empty()) return;
  control = control_.data();
  control_size = static_cast<uint32_t>(reinterpret_cast<const cmsghdr*>(control_.data())->cmsg_len);
}

absl::StatusOr<size_t> SendHandlesAwaiter::Take() {
  if (result >= 0) return static_cast<size_t>(result);
  return ErrnoStatus(result,
                     socket_ ? socket_->Describe("send descriptors", "to") : "send descriptors");
}

ReceiveHandlesAwaiter::ReceiveHandlesAwaiter(const IntrusivePtr<SocketState>& socket,
                                             absl::Span<char> into, size_t max_handles)
    : SocketAwaiter(IntrusivePtr<SocketState>(socket)), into_(into), max_handles_(max_handles) {
  CheckCount(max_handles);
}

void ReceiveHandlesAwaiter::Prepare() {
  piece_ = {into_.data(), into_.size()};
  PrepareRecvMsg(socket_->handle(), &piece_, 1);
  if (max_handles_ == 0) return;
  // Not the room that alignment would have: one more would fit in.
  const size_t size = CMSG_LEN(max_handles_ * sizeof(int));
  control_.assign(Words(size), 0);
  control = control_.data();
  control_size = static_cast<uint32_t>(size);
}

std::vector<UniqueHandle> ReceiveHandlesAwaiter::TakeHandles() {
  is_taken_ = true;
  std::vector<UniqueHandle> handles;
  msghdr header = {};
  header.msg_control = control_.data();
  header.msg_controllen = control_.empty() ? 0 : control_size;
  for (cmsghdr* part = CMSG_FIRSTHDR(&header); part != nullptr; part = CMSG_NXTHDR(&header, part)) {
    if (part->cmsg_level != SOL_SOCKET || part->cmsg_type != SCM_RIGHTS) continue;
    const size_t count = (part->cmsg_len - CMSG_LEN(0)) / sizeof(int);
    for (size_t i = 0; i < count; ++i) {
      int fd;
      std::memcpy(&fd, CMSG_DATA(part) + i * sizeof(int), sizeof(fd));
#ifndef MSG_CMSG_CLOEXEC
      ::fcntl(fd, F_SETFD, FD_CLOEXEC);
#endif
      fd = AboveStandardStreams(fd);
      if (fd >= 0) {
        handles.emplace_back(fd);
      } else {
        message_flags |= MSG_CTRUNC;  // As the kernel says of one that it has no number for.
      }
    }
  }
  return handles;
}

absl::StatusOr<ReceivedHandles> ReceiveHandlesAwaiter::Take() {
  if (result < 0) {
    return ErrnoStatus(
        result, socket_ ? socket_->Describe("receive descriptors", "from") : "receive descriptors");
  }
  ReceivedHandles received;
  received.size = static_cast<size_t>(result);
  received.handles = TakeHandles();
  received.is_truncated = (message_flags & MSG_CTRUNC) != 0;
  return received;
}

}  // namespace internal
}  // namespace weft

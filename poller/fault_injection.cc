// Copyright 2026 The weft Authors.
// SPDX-License-Identifier: Apache-2.0

#include "weft/poller/fault_injection.h"

#include <algorithm>
#include <cerrno>

namespace weft {

// What an operation can fail with, by the manual pages. EAGAIN is none of those: a
// poller waits then. That it does so, and goes on after EINTR, is tested below the
// poller (epoll_faults_test.cc).
int FaultyPoller::NextError(const Operation& op) {
  switch (op.opcode) {
    case OpCode::kRecv:
    case OpCode::kRecvMsg:
    case OpCode::kRecvLent:
      return faults_->Next({ECONNRESET, ENOMEM, ENOBUFS, ETIMEDOUT});
    case OpCode::kSend:
    case OpCode::kSendMsg:
      return faults_->Next({ECONNRESET, EPIPE, ENOMEM, ENOBUFS});
    case OpCode::kAccept:
      return faults_->Next({ECONNABORTED, EMFILE, ENFILE, ENOMEM, ENOBUFS, EINTR, EPROTO});
    case OpCode::kConnect:
      return faults_->Next({ECONNREFUSED, ETIMEDOUT, ENOBUFS, ENETUNREACH, EADDRNOTAVAIL, EAGAIN});
    case OpCode::kRead:
      return faults_->Next({EIO, ENOMEM});
    case OpCode::kWrite:
      return faults_->Next({EIO, ENOSPC, EPIPE, ENOMEM});
    case OpCode::kFsync:
      return faults_->Next({EIO, ENOSPC});
    case OpCode::kWaitReadable:
    case OpCode::kWaitWritable:
      return faults_->Next({ENOMEM, ENOSPC});
    case OpCode::kRetire:
      break;  // A handle goes, whatever close() says.
  }
  return 0;
}

StartResult FaultyPoller::Start(Operation* op) {
  failed_.erase(op);
  if (const int error = NextError(*op); error != 0) {
    failed_.insert(op);
    op->result = error;
    op->state = Operation::State::kDone;
    return StartResult::kDone;
  }
  switch (op->opcode) {
    case OpCode::kRecv:
    case OpCode::kSend:
    case OpCode::kRead:
    case OpCode::kWrite:
      op->buffer.size = faults_->Shorten(op->buffer.size);
      break;
    case OpCode::kSendMsg:
      // What is sent to an address is a datagram, and whole or not at all.
      if (op->address == nullptr && op->control_size == 0) {
        op->buffers.count = faults_->Shorten(op->buffers.count);
      }
      break;
    default:
      break;
  }
  return PollerWrapper::Start(op);
}

void FaultyPoller::Cancel(Operation* op) {
  if (failed_.count(op) == 0) PollerWrapper::Cancel(op);
}

absl::Status FaultyPoller::Wait(TimePoint deadline, ReadyQueue* done) {
  // It may return for no reason at all.
  return PollerWrapper::Wait(faults_->Chance(8) ? TimePoint::InfinitePast() : deadline, done);
}

NativeHandle FaultySocketApi::Open(SocketDomain domain, SocketType type, int protocol) {
  const int error = faults_->Next({EMFILE, ENFILE, ENOBUFS, ENOMEM, EAFNOSUPPORT});
  return error != 0 ? error : inner_->Open(domain, type, protocol);
}

int FaultySocketApi::OpenPair(SocketType type, NativeHandle pair[2]) {
  const int error = faults_->Next({EMFILE, ENFILE, ENOBUFS, ENOMEM});
  return error != 0 ? error : inner_->OpenPair(type, pair);
}

int FaultySocketApi::Bind(NativeHandle socket, const SockAddr& address) {
  const int error = faults_->Next({EADDRINUSE, EADDRNOTAVAIL, EACCES, ENOMEM});
  return error != 0 ? error : inner_->Bind(socket, address);
}

int FaultySocketApi::Listen(NativeHandle socket, int backlog) {
  const int error = faults_->Next({EADDRINUSE, ENOBUFS});
  return error != 0 ? error : inner_->Listen(socket, backlog);
}

int FaultySocketApi::GetSockName(NativeHandle socket, SockAddr* address) {
  const int error = faults_->Next({ENOBUFS});
  return error != 0 ? error : inner_->GetSockName(socket, address);
}

int FaultySocketApi::GetPeerName(NativeHandle socket, SockAddr* address) {
  const int error = faults_->Next({ENOTCONN, ENOBUFS});
  return error != 0 ? error : inner_->GetPeerName(socket, address);
}

int FaultySocketApi::SetOption(NativeHandle socket, SocketOption option, int value) {
  const int error = faults_->Next({ENOMEM, ENOPROTOOPT, EINVAL});
  return error != 0 ? error : inner_->SetOption(socket, option, value);
}

int FaultySocketApi::GetOption(NativeHandle socket, SocketOption option, int* value) {
  const int error = faults_->Next({ENOBUFS, ENOPROTOOPT});
  return error != 0 ? error : inner_->GetOption(socket, option, value);
}

int FaultySocketApi::SetRawOption(NativeHandle socket, int level, int name, const void* value,
                                  size_t size) {
  const int error = faults_->Next({ENOMEM, ENOPROTOOPT, EINVAL});
  return error != 0 ? error : inner_->SetRawOption(socket, level, name, value, size);
}

int FaultySocketApi::GetRawOption(NativeHandle socket, int level, int name, void* value,
                                  size_t* size) {
  const int error = faults_->Next({ENOBUFS, ENOPROTOOPT});
  return error != 0 ? error : inner_->GetRawOption(socket, level, name, value, size);
}

int FaultySocketApi::JoinGroup(NativeHandle socket, const SockAddr& group, uint32_t interface) {
  const int error = faults_->Next({ENODEV, ENOBUFS});
  return error != 0 ? error : inner_->JoinGroup(socket, group, interface);
}

int FaultySocketApi::LeaveGroup(NativeHandle socket, const SockAddr& group, uint32_t interface) {
  const int error = faults_->Next({EADDRNOTAVAIL});
  return error != 0 ? error : inner_->LeaveGroup(socket, group, interface);
}

int FaultySocketApi::ReceiveMany(NativeHandle socket, DatagramSlot* slots, int count) {
  const int error = faults_->Next({EAGAIN, ENOMEM, ENOBUFS, ECONNREFUSED});
  if (error != 0) return error;
  return inner_->ReceiveMany(socket, slots,
                             static_cast<int>(faults_->Shorten(static_cast<size_t>(count))));
}

int FaultySocketApi::SendMany(NativeHandle socket, const DatagramSlot* slots, int count) {
  const int error = faults_->Next({EAGAIN, ENOMEM, ENOBUFS, ECONNREFUSED});
  if (error != 0) return error;
  return inner_->SendMany(socket, slots,
                          static_cast<int>(faults_->Shorten(static_cast<size_t>(count))));
}

int64_t FaultySocketApi::SendSegments(NativeHandle socket, const void* data, size_t size,
                                      size_t segment_size, const SockAddr& address) {
  const int error = faults_->Next({EAGAIN, ENOSYS, ECONNREFUSED, ENOBUFS, ENOMEM});
  return error != 0 ? error : inner_->SendSegments(socket, data, size, segment_size, address);
}

int64_t FaultySocketApi::SendFile(NativeHandle socket, NativeHandle file, int64_t offset,
                                  size_t count) {
  const int error = faults_->Next({EAGAIN, EINVAL, ENOSYS, ENOMEM, ECONNRESET, EPIPE, EIO});
  return error != 0 ? error : inner_->SendFile(socket, file, offset, faults_->Shorten(count));
}

int FaultySocketApi::Shutdown(NativeHandle socket, ShutdownHow how) {
  // (ENOTCONN says something of the connection that would not be true.)
  const int error = faults_->Next({ENOBUFS});
  return error != 0 ? error : inner_->Shutdown(socket, how);
}

}  // namespace weft

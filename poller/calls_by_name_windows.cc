// Copyright 2026 The weft Authors.
// SPDX-License-Identifier: Apache-2.0

#include "weft/poller/calls_by_name_windows.h"

#include <winternl.h>

#include <cstdint>

namespace weft::internal {

namespace {

constexpr ULONG kIoctlAfdPoll = 0x00012024;
constexpr ULONG kAfdReceive = 0x0001;
constexpr ULONG kAfdSend = 0x0004;
constexpr ULONG kAfdDisconnect = 0x0008;
constexpr ULONG kAfdAbort = 0x0010;
constexpr ULONG kAfdLocalClose = 0x0020;
constexpr ULONG kAfdAccept = 0x0080;
constexpr ULONG kAfdConnectFail = 0x0100;
constexpr ULONG kAfdReadable =
    kAfdReceive | kAfdDisconnect | kAfdAbort | kAfdLocalClose | kAfdAccept | kAfdConnectFail;
constexpr ULONG kAfdWritable = kAfdSend | kAfdAbort | kAfdLocalClose | kAfdConnectFail;

using DeviceIoControl = LONG(NTAPI*)(HANDLE, HANDLE, void*, void*, void*, ULONG, void*, ULONG,
                                     void*, ULONG);
using SetInformation = LONG(NTAPI*)(HANDLE, void*, void*, ULONG, int);

template <class Fn>
Fn FromNtdll(const char* name) {
  return reinterpret_cast<Fn>(
      reinterpret_cast<void*>(::GetProcAddress(::GetModuleHandleW(L"ntdll.dll"), name)));
}

template <class Fn>
Fn FromProvider(SOCKET socket, GUID id) {
  Fn found = nullptr;
  DWORD size;
  ::WSAIoctl(socket, SIO_GET_EXTENSION_FUNCTION_POINTER, &id, sizeof(id), &found, sizeof(found),
             &size, nullptr, nullptr);
  return found;
}

}  // namespace

LONG StartAfdPoll(HANDLE socket, bool to_write, AfdPoll* poll, OVERLAPPED* overlapped) {
  static const auto control = FromNtdll<DeviceIoControl>("NtDeviceIoControlFile");
  *poll = {};
  poll->timeout.QuadPart = INT64_MAX;
  poll->count = 1;
  poll->socket = {socket, to_write ? kAfdWritable : kAfdReadable, 0};
  // The first two members of an OVERLAPPED are an IO_STATUS_BLOCK; what is passed on to the
  // port is what CreateIoCompletionPort() has it be, the OVERLAPPED.
  return control(socket, nullptr, nullptr, overlapped, overlapped, kIoctlAfdPoll, poll,
                 sizeof(*poll), poll, sizeof(*poll));
}

bool ReplacePort(HANDLE handle, HANDLE port) {
  static const auto set = FromNtdll<SetInformation>("NtSetInformationFile");
  struct {
    HANDLE port;
    void* key;
  } completion = {port, nullptr};
  constexpr int kReplaceCompletion = 61;  // FileReplaceCompletionInformation.
  IO_STATUS_BLOCK status = {};
  return set(handle, &status, &completion, sizeof(completion), kReplaceCompletion) >= 0;
}

LPFN_ACCEPTEX AcceptExOf(SOCKET socket) {
  static const auto found = FromProvider<LPFN_ACCEPTEX>(socket, WSAID_ACCEPTEX);
  return found;
}

LPFN_CONNECTEX ConnectExOf(SOCKET socket) {
  static const auto found = FromProvider<LPFN_CONNECTEX>(socket, WSAID_CONNECTEX);
  return found;
}

}  // namespace weft::internal

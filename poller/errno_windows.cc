// Copyright 2026 The weft Authors.
// SPDX-License-Identifier: Apache-2.0

#include "weft/poller/errno_windows.h"

#include <winsock2.h>
// Behind it.
#include <windows.h>

#include <cerrno>

namespace weft::internal {

int ErrnoOfWin32(uint32_t error) {
  switch (error) {
    case NO_ERROR:
      return 0;
    case WSAEWOULDBLOCK:
    case WSAEINPROGRESS:
      return EAGAIN;
    case WSAEINTR:
      return EINTR;
    case WSAEBADF:
    case ERROR_INVALID_HANDLE:
      return EBADF;
    case WSAEACCES:
    case ERROR_ACCESS_DENIED:
    case ERROR_SHARING_VIOLATION:
    case ERROR_LOCK_VIOLATION:
      return EACCES;
    case WSAEFAULT:
    case ERROR_NOACCESS:
      return EFAULT;
    case WSAEINVAL:
    case ERROR_INVALID_PARAMETER:
    case ERROR_INVALID_USER_BUFFER:
      return EINVAL;
    case WSAEMFILE:
    case ERROR_TOO_MANY_OPEN_FILES:
      return EMFILE;
    case WSAEALREADY:
      return EALREADY;
    case WSAENOTSOCK:
      return ENOTSOCK;
    case WSAEDESTADDRREQ:
      return EDESTADDRREQ;
    case WSAEMSGSIZE:
    case ERROR_MORE_DATA:
      return EMSGSIZE;
    case WSAEPROTOTYPE:
      return EPROTOTYPE;
    case WSAENOPROTOOPT:
      return ENOPROTOOPT;
    case WSAEPROTONOSUPPORT:
    case WSAESOCKTNOSUPPORT:
      return EPROTONOSUPPORT;
    case WSAEOPNOTSUPP:
    case ERROR_NOT_SUPPORTED:
    case ERROR_INVALID_FUNCTION:
    case ERROR_CALL_NOT_IMPLEMENTED:
      return EOPNOTSUPP;
    case WSAEPFNOSUPPORT:
    case WSAEAFNOSUPPORT:
      return EAFNOSUPPORT;
    case WSAEADDRINUSE:
    case ERROR_ADDRESS_ALREADY_ASSOCIATED:
      return EADDRINUSE;
    case WSAEADDRNOTAVAIL:
      return EADDRNOTAVAIL;
    case WSAENETDOWN:
      return ENETDOWN;
    case WSAENETUNREACH:
    case ERROR_NETWORK_UNREACHABLE:
      return ENETUNREACH;
    case WSAENETRESET:
      return ENETRESET;
    case WSAECONNABORTED:
    case ERROR_CONNECTION_ABORTED:
      return ECONNABORTED;
    case WSAECONNRESET:
    case ERROR_NETNAME_DELETED:
      return ECONNRESET;
    case WSAENOBUFS:
    case ERROR_NO_SYSTEM_RESOURCES:
    case ERROR_WORKING_SET_QUOTA:
      return ENOBUFS;
    case WSAEISCONN:
      return EISCONN;
    case WSAENOTCONN:
    case ERROR_PIPE_LISTENING:
    case ERROR_PIPE_NOT_CONNECTED:
      return ENOTCONN;
    case WSAESHUTDOWN:
    case WSAEDISCON:
    case ERROR_BROKEN_PIPE:
    case ERROR_NO_DATA:
      return EPIPE;
    case WSAETIMEDOUT:
    case ERROR_SEM_TIMEOUT:
    case WAIT_TIMEOUT:
      return ETIMEDOUT;
    case WSAECONNREFUSED:
    case ERROR_CONNECTION_REFUSED:
      return ECONNREFUSED;
    case WSAELOOP:
      return ELOOP;
    case WSAENAMETOOLONG:
    case ERROR_FILENAME_EXCED_RANGE:
      return ENAMETOOLONG;
    case WSAEHOSTDOWN:
    case WSAEHOSTUNREACH:
    case ERROR_HOST_UNREACHABLE:
      return EHOSTUNREACH;
    case ERROR_OPERATION_ABORTED:  // WSA_OPERATION_ABORTED.
    case WSAECANCELLED:
    case WSA_E_CANCELLED:
      return ECANCELED;
    case ERROR_FILE_NOT_FOUND:
    case ERROR_PATH_NOT_FOUND:
    case ERROR_INVALID_NAME:
    case ERROR_INVALID_DRIVE:
    case ERROR_BAD_PATHNAME:
    case ERROR_BAD_NETPATH:
      return ENOENT;
    case ERROR_FILE_EXISTS:
    case ERROR_ALREADY_EXISTS:
      return EEXIST;
    case ERROR_DIRECTORY:
      return ENOTDIR;
    case ERROR_DIR_NOT_EMPTY:
      return ENOTEMPTY;
    case ERROR_NOT_ENOUGH_MEMORY:
    case ERROR_OUTOFMEMORY:
    case ERROR_COMMITMENT_LIMIT:
      return ENOMEM;
    case ERROR_DISK_FULL:
    case ERROR_HANDLE_DISK_FULL:
      return ENOSPC;
    case ERROR_WRITE_PROTECT:
      return EROFS;
    case ERROR_PIPE_BUSY:
    case ERROR_BUSY:
      return EBUSY;
    case ERROR_SEEK_ON_DEVICE:
      return ESPIPE;
    case ERROR_BAD_EXE_FORMAT:
      return ENOEXEC;
    default:
      return EIO;
  }
}

int ErrnoOfStatus(uint32_t status) {
  // ntstatus.h and winnt.h define some of the same names, so here are the numbers.
  switch (status) {
    case 0x00000000:  // STATUS_SUCCESS
      return 0;
    case 0xC0000120:  // STATUS_CANCELLED
    case 0x8000000A:  // STATUS_HANDLES_CLOSED
    case 0xC0000128:  // STATUS_FILE_CLOSED
      return ECANCELED;
    case 0xC0000008:  // STATUS_INVALID_HANDLE
    case 0xC0000024:  // STATUS_OBJECT_TYPE_MISMATCH
      return EBADF;
    case 0xC0000022:  // STATUS_ACCESS_DENIED
      return EACCES;
    case 0xC0000005:  // STATUS_ACCESS_VIOLATION
      return EFAULT;
    case 0xC000000D:  // STATUS_INVALID_PARAMETER
      return EINVAL;
    case 0x80000005:  // STATUS_BUFFER_OVERFLOW
    case 0xC0000023:  // STATUS_BUFFER_TOO_SMALL
    case 0xC0000206:  // STATUS_INVALID_BUFFER_SIZE
      return EMSGSIZE;
    case 0xC0000236:  // STATUS_CONNECTION_REFUSED
    case 0xC000023F:  // STATUS_PORT_UNREACHABLE
      return ECONNREFUSED;
    case 0xC000020D:  // STATUS_CONNECTION_RESET
    case 0xC000013B:  // STATUS_LOCAL_DISCONNECT
    case 0xC000013C:  // STATUS_REMOTE_DISCONNECT
    case 0xC000020C:  // STATUS_CONNECTION_DISCONNECTED
      return ECONNRESET;
    case 0xC0000241:  // STATUS_CONNECTION_ABORTED
      return ECONNABORTED;
    case 0xC00000B5:  // STATUS_IO_TIMEOUT
    case 0xC000020F:  // STATUS_LINK_TIMEOUT
      return ETIMEDOUT;
    case 0xC000023C:  // STATUS_NETWORK_UNREACHABLE
    case 0xC000023E:  // STATUS_PROTOCOL_UNREACHABLE
      return ENETUNREACH;
    case 0xC000023D:  // STATUS_HOST_UNREACHABLE
      return EHOSTUNREACH;
    case 0xC0000207:  // STATUS_INVALID_ADDRESS_COMPONENT
    case 0xC0000141:  // STATUS_INVALID_ADDRESS
      return EADDRNOTAVAIL;
    case 0xC0000209:  // STATUS_TOO_MANY_ADDRESSES
    case 0xC000020A:  // STATUS_ADDRESS_ALREADY_EXISTS
      return EADDRINUSE;
    case 0xC000009A:  // STATUS_INSUFFICIENT_RESOURCES
      return ENOBUFS;
    case 0xC0000017:  // STATUS_NO_MEMORY
      return ENOMEM;
    case 0xC00000B0:  // STATUS_PIPE_DISCONNECTED
    case 0xC000014B:  // STATUS_PIPE_BROKEN
    case 0xC00000B1:  // STATUS_PIPE_CLOSING
      return EPIPE;
    case 0xC000007F:  // STATUS_DISK_FULL
      return ENOSPC;
    case 0xC00000BB:  // STATUS_NOT_SUPPORTED
    case 0xC0000002:  // STATUS_NOT_IMPLEMENTED
    case 0xC0000010:  // STATUS_INVALID_DEVICE_REQUEST
      return EOPNOTSUPP;
    default:
      return EIO;
  }
}

int64_t LastError() { return -ErrnoOfWin32(::GetLastError()); }

int64_t LastSocketError() { return -ErrnoOfWin32(static_cast<uint32_t>(::WSAGetLastError())); }

}  // namespace weft::internal

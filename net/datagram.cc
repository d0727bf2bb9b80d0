// Copyright 2026 The weft Authors.
// SPDX-License-Identifier: Apache-2.0

#include "weft/net/datagram.h"

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <new>
#include <vector>

#include "absl/numeric/bits.h"
#include "absl/strings/str_cat.h"
#include "weft/core/errors.h"
#include "weft/core/sleep.h"
#include "weft/net/errno_status.h"
#include "weft/net/socket_options.h"

namespace weft {
namespace internal {

// -- DatagramState.

DatagramState::DatagramState(Socket socket, size_t max_size)
    : socket_(std::move(socket)), max_size_(max_size), slots_(kSlots) {
  absl::StatusOr<SocketAddress> local = socket_.LocalAddress();
  is_ip_ = local.ok() && local->is_ip();
}

DatagramState::~DatagramState() { CloseNow(); }

void DatagramState::OwnFile(std::string path) {
  file_ = IdentifySocketFile(path);
  path_ = std::move(path);
}

void DatagramState::CloseNow() {
  if (!path_.empty()) RemoveSocketFile(std::exchange(path_, ""), file_);
  socket_.Close();
}

// Receives what there is: how many, 0 for nothing, or a negated errno. REQUIRES: nobody
// has a claim, and nothing is left.
int DatagramState::Fill() {
  if (memory_ == nullptr) {
    memory_.reset(new (std::nothrow) char[max_size_ * kSlots]);
    if (memory_ == nullptr) return -ENOMEM;
  }
  for (size_t i = 0; i < slots_.size(); ++i) {
    slots_[i].data = memory_.get() + i * max_size_;
    slots_[i].size = max_size_;
  }
  next_ = filled_ = 0;
  const int count = socket_.state()->api()->ReceiveMany(socket_.handle(), slots_.data(), kSlots);
  if (count > 0) filled_ = count;
  return count == -EAGAIN ? 0 : count;
}

bool DatagramState::HasMore(bool* has_received, int* error) {
  *error = 0;
  if (!is_drained()) return true;
  // What others have claimed they will take before the next poll.
  if (claimed_ > 0) return false;
  *has_received = true;
  *error = std::min(Fill(), 0);
  return !is_drained();
}

int DatagramState::Claim() {
  ++claimed_;
  if (returned_ == 0) return next_++;
  const int number = absl::countr_zero(returned_);
  returned_ &= returned_ - 1;
  return number;
}

void DatagramState::GiveToReceivers() {
  while (!is_drained() && !receivers_.empty()) {
    static_cast<DatagramReceiver*>(receivers_.PopFront())->GiveClaim(Claim());
  }
}

void DatagramState::PutBack(int number) {
  if (DatagramReceiverLink* next = receivers_.PopFront()) {
    return static_cast<DatagramReceiver*>(next)->GiveClaim(number);
  }
  --claimed_;
  returned_ |= uint32_t{1} << number;
}

// -- Receiving.

DatagramReceiver::DatagramReceiver(const IntrusivePtr<DatagramState>& datagram)
    : SocketOperation(&OnDone, SocketOf(datagram)), datagram_(datagram) {}

DatagramReceiver::~DatagramReceiver() {
  if (claim_ >= 0) datagram_->ReleaseClaim();
}

bool DatagramReceiver::Begin(std::coroutine_handle<> handle) {
  if (!datagram_->is_open()) {
    result = -EBADF;
    return false;
  }
  for (int attempt = 0;; ++attempt) {
    bool has_received = false;
    int error = 0;
    // If others wait there is nothing for this one: they would have it.
    if (datagram_->receivers().empty()) {
      if (datagram_->HasMore(&has_received, &error)) claim_ = datagram_->Claim();
      result = error;
    }
    if (claim_ >= 0 || error != 0) {
      if (!has_received || SpendBudget()) return false;
      Yield(handle);
      return true;
    }
    PrepareWaitReadable(socket_->handle(), kWaitAgain);
    if (poller().Start(this) == StartResult::kPending) break;
    if (result < 0) return false;  // It cannot be waited for.
    // There is something by now, but others may come first.
    if (attempt == 1 || !datagram_->receivers().empty()) {
      task_->scheduler()->ready.PushBack(this);
      break;
    }
  }
  datagram_->receivers().PushBack(this);
  Suspend(handle);
  return true;
}

void DatagramReceiver::OnDone(Runnable* runnable) {
  auto* self = static_cast<DatagramReceiver*>(runnable);
  if (self->claim_ < 0 && self->result >= 0) {
    int error = -ECANCELED;
    if (!self->is_cancelling_ && self->datagram_->is_open()) {
      bool has_received = false;
      // Not for this one first: others may have come before it.
      if (self->datagram_->HasMore(&has_received, &error)) self->datagram_->GiveToReceivers();
      // Others were faster, or the kernel has dropped it.
      if (self->claim_ < 0 && error == 0) return self->WaitOn();
    }
    self->result = error;
  }
  self->DatagramReceiverLink::Unlink();
  self->WakeTask();
}

void DatagramReceiver::WaitOn() {
  PrepareWaitReadable(socket_->handle(), kWaitAgain);
  if (poller().Start(this) == StartResult::kDone) task_->scheduler()->ready.PushBack(this);
}

void DatagramReceiver::GiveClaim(int number) {
  claim_ = number;
  // Its end, whatever it says, is when the task is told.
  poller().Cancel(this);
}

bool DatagramReceiver::EndedByCancel() {
  DatagramReceiverLink::Unlink();
  if (SocketOperation::EndedByCancel(/*stays=*/false)) {
    if (claim_ >= 0) datagram_->PutBack(std::exchange(claim_, -1));
    return true;
  }
  if (claim_ >= 0) result = 0;  // It may have been given to it.
  return false;
}

const DatagramSlot* DatagramReceiver::claimed() const {
  return claim_ >= 0 ? &datagram_->slot(claim_) : nullptr;
}

absl::Status DatagramReceiver::Error() const {
  return ErrnoStatus(result, socket_ ? socket_->Describe("receive", "from") : "receive");
}

absl::StatusOr<Packet> ReceivePacketAwaiter::Take() {
  const DatagramSlot* slot = claimed();
  if (slot == nullptr) return Error();
  Packet packet;
  packet.data.assign(static_cast<const char*>(slot->data), slot->size);
  packet.from = SocketAddress::FromNative(slot->address);
  packet.is_truncated = slot->is_truncated;
  return packet;
}

absl::StatusOr<Received> ReceiveIntoAwaiter::Take() {
  const DatagramSlot* slot = claimed();
  if (slot == nullptr) return Error();
  const size_t count = std::min(slot->size, into_.size());
  if (count > 0) std::memcpy(into_.data(), slot->data, count);
  Received received(count, SocketAddress::FromNative(slot->address));
  received.is_truncated = slot->is_truncated || count < slot->size;
  return received;
}

// -- Sending.

namespace {

absl::Status SendError(const SocketState* socket, int64_t result, const SocketAddress& to) {
  if (!to.is_none()) return ErrnoStatus(result, absl::StrCat("send to ", to.ToString()));
  return ErrnoStatus(result, socket == nullptr ? "send" : socket->Describe("send", "to"));
}

}  // namespace

absl::Status SendDatagramAwaiter::Take() {
  if (result >= 0) return absl::OkStatus();
  return SendError(socket_.get(), result, SocketAddress::FromNative(to_));
}

}  // namespace internal

namespace {

using internal::DatagramState;
using internal::IntrusivePtr;

// As many as the kernel cuts in one call, and as many bytes (udp(7), UDP_SEGMENT).
constexpr size_t kSegmentsACall = 64;
constexpr size_t kBytesACall = 65507;

// How many datagrams are handed over in one call.
constexpr size_t kDatagramsACall = 64;

SocketDomain DomainOf(const DatagramOptions& options) {
  if (!options.remote_address.is_none()) return options.remote_address.domain();
  if (!options.local_address.is_none()) return options.local_address.domain();
  switch (options.family) {
    case SocketAddress::Family::kIpv6:
      return SocketDomain::kInet6;
    case SocketAddress::Family::kUnix:
      return SocketDomain::kUnix;
    default:
      return SocketDomain::kInet;
  }
}

// Everything but the connect.
absl::StatusOr<Socket> Prepare(const DatagramOptions& options) {
  absl::StatusOr<Socket> socket = Socket::Open(DomainOf(options), SocketType::kDatagram);
  if (!socket.ok()) return socket.status();
  absl::Status status;
  if (options.reuse_address) status.Update(socket->SetOption(socket_option::kReuseAddr, true));
  if (options.reuse_port) status.Update(internal::SharePort(*socket));
  if (options.allow_broadcast) status.Update(socket->SetOption(socket_option::kBroadcast, true));
  if (!status.ok()) return status;
  const SocketAddress& local = options.local_address;
  if (local.is_none()) return socket;
  if (local.is_unix() && !local.is_abstract()) internal::RemoveSocketFile(local.path());
  absl::Status bound = socket->Bind(local);
  if (!bound.ok()) return bound;
  return socket;
}

}  // namespace

Coro<absl::StatusOr<Datagram>> OpenDatagram(DatagramOptions options) {
  if (options.max_size == 0) throw ValueError("max_size cannot be 0");
  absl::StatusOr<Socket> socket = Prepare(options);
  if (!socket.ok()) co_return socket.status();
  IntrusivePtr<DatagramState> state(new DatagramState(*std::move(socket), options.max_size));
  const SocketAddress& local = options.local_address;
  if (local.is_unix() && !local.is_abstract()) state->OwnFile(local.path());
  Datagram endpoint(state);  // Closes it, if it cannot be connected.
  if (!options.remote_address.is_none()) {
    absl::Status connected = co_await state->socket().Connect(options.remote_address);
    if (!connected.ok()) co_return connected;
  }
  co_return endpoint;
}

Coro<absl::StatusOr<Datagram>> OpenDatagram(std::string remote_host, uint16_t remote_port,
                                            DatagramOptions options) {
  ResolveOptions resolve;
  resolve.family =
      options.local_address.is_none() ? options.family : options.local_address.family();
  resolve.type = SocketType::kDatagram;
  absl::StatusOr<Addresses> addresses =
      co_await GetAddrInfo(std::move(remote_host), remote_port, resolve, options.resolver);
  if (!addresses.ok()) co_return addresses.status();
  absl::Status failed;
  for (const SocketAddress& address : *addresses) {
    options.remote_address = address;
    absl::StatusOr<Datagram> endpoint = co_await OpenDatagram(options);
    if (endpoint.ok()) co_return endpoint;
    failed.Update(endpoint.status());
  }
  co_return failed;
}

Coro<absl::StatusOr<size_t>> Datagram::SendMany(absl::Span<const Outgoing> datagrams) {
  const IntrusivePtr<DatagramState> state = state_;
  std::vector<DatagramSlot> messages;
  size_t sent = 0;
  while (sent < datagrams.size()) {
    if (!state->is_open()) {
      if (sent > 0) co_return sent;
      co_return internal::SendError(state->socket().state().get(), -EBADF, datagrams[sent].to);
    }
    int count = -EAGAIN;
    if (!state->has_blocked_sends()) {
      messages.resize(std::min(datagrams.size() - sent, kDatagramsACall));
      for (size_t i = 0; i < messages.size(); ++i) {
        const Outgoing& datagram = datagrams[sent + i];
        messages[i].data = const_cast<char*>(datagram.data.data());
        messages[i].size = datagram.data.size();
        messages[i].address = datagram.to.ToNative();
      }
      count = state->socket().state()->api()->SendMany(state->socket().handle(), messages.data(),
                                                       static_cast<int>(messages.size()));
    }
    if (count > 0) {
      sent += static_cast<size_t>(count);
      if (sent < datagrams.size()) co_await Yield();  // The others' turn.
      continue;
    }
    if (count != -EAGAIN) {
      if (sent > 0) co_return sent;
      co_return internal::SendError(state->socket().state().get(), count, datagrams[sent].to);
    }
    // One that waits, behind those that do already.
    internal::SendDatagramAwaiter one(state, datagrams[sent].data, datagrams[sent].to.ToNative());
    absl::Status status = co_await std::move(one);
    if (!status.ok()) {
      if (sent > 0) co_return sent;
      co_return status;
    }
    ++sent;
  }
  co_return sent;
}

Coro<absl::Status> Datagram::SendSegments(std::string_view data, size_t segment_size,
                                          SocketAddress to) {
  if (segment_size == 0) throw ValueError("segment_size cannot be 0");
  const IntrusivePtr<DatagramState> state = state_;
  const SockAddr address = to.ToNative();
  while (!data.empty()) {
    if (!state->is_open()) {
      co_return internal::SendError(state->socket().state().get(), -EBADF, to);
    }
    const size_t segments = std::min({kSegmentsACall, kBytesACall / segment_size,
                                      (data.size() + segment_size - 1) / segment_size});
    const std::string_view portion = data.substr(0, segments * segment_size);
    int64_t result = -ENOSYS;
    if (segments > 1 && state->is_ip()) {
      result = state->has_blocked_sends() ? -EAGAIN
                                          : state->socket().state()->api()->SendSegments(
                                                state->socket().handle(), portion.data(),
                                                portion.size(), segment_size, address);
    }
    if (result >= 0) {
      data.remove_prefix(portion.size());
      if (!data.empty()) co_await Yield();
      continue;
    }
    if (result == -ENOSYS && segments > 1) {
      // The kernel, or the device, cannot cut.
      std::vector<Outgoing> datagrams;
      for (size_t i = 0; i < segments; ++i) {
        datagrams.emplace_back(portion.substr(i * segment_size, segment_size), to);
      }
      absl::StatusOr<size_t> sent = co_await SendMany(datagrams);
      if (!sent.ok()) co_return sent.status();
      data.remove_prefix(std::min(portion.size(), *sent * segment_size));
      continue;
    }
    if (result != -EAGAIN && result != -ENOSYS) {
      co_return internal::SendError(state->socket().state().get(), result, to);
    }
    internal::SendDatagramAwaiter one(state, data.substr(0, segment_size), address);
    absl::Status status = co_await std::move(one);
    if (!status.ok()) co_return status;
    data.remove_prefix(std::min(data.size(), segment_size));
  }
  co_return absl::OkStatus();
}

absl::Status Datagram::JoinGroup(const SocketAddress& group, uint32_t interface) {
  const int64_t result = is_open() ? state_->socket().state()->api()->JoinGroup(
                                         state_->socket().handle(), group.ToNative(), interface)
                                   : -EBADF;
  if (result >= 0) return absl::OkStatus();
  return ErrnoStatus(result, absl::StrCat("join the group ", group.ToString()));
}

absl::Status Datagram::LeaveGroup(const SocketAddress& group, uint32_t interface) {
  const int64_t result = is_open() ? state_->socket().state()->api()->LeaveGroup(
                                         state_->socket().handle(), group.ToNative(), interface)
                                   : -EBADF;
  if (result >= 0) return absl::OkStatus();
  return ErrnoStatus(result, absl::StrCat("leave the group ", group.ToString()));
}

}  // namespace weft

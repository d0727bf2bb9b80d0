// Copyright 2026 The weft Authors.
// SPDX-License-Identifier: Apache-2.0

#ifndef WEFT_NET_DATAGRAM_H_
#define WEFT_NET_DATAGRAM_H_

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>
#include <utility>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/types/span.h"
#include "weft/core/coro.h"
#include "weft/core/intrusive_ptr.h"
#include "weft/net/datagram_state.h"
#include "weft/net/resolver.h"
#include "weft/net/socket.h"
#include "weft/net/socket_address.h"

namespace weft {

struct DatagramOptions {
  DatagramOptions() {}

  // Where it receives: an IP address, or the path or abstract name of a Unix socket.
  // None: a port of the system's choice, once something was sent.
  SocketAddress local_address;

  // With whom alone it talks ("connected"). None: with anybody.
  SocketAddress remote_address;

  // If there is neither address: of which family it is. kNone: IPv4.
  SocketAddress::Family family = SocketAddress::Family::kNone;

  // SO_REUSEADDR. For multicast only: of several that share a port, each gets what is
  // sent to a group, but one steals all that is sent to the port itself.
  bool reuse_address = false;
  bool reuse_port = false;       // SO_REUSEPORT: they share what comes.
  bool allow_broadcast = false;  // SO_BROADCAST.

  // What is longer is cut off. Takes so much memory for each of the datagrams that are
  // received in one call, as far as they fill it.
  size_t max_size = 65536;

  Resolver* resolver = nullptr;  // Null: the loop's.
};

// Datagram
//
// An endpoint for datagrams: UDP, or a Unix datagram socket.
//
//   DatagramOptions options;
//   options.local_address = SocketAddress::Ipv4Loopback(5353);
//   absl::StatusOr<Datagram> endpoint = co_await OpenDatagram(options);
//   ...
//   absl::StatusOr<Packet> packet = co_await endpoint->Receive();
//   if (packet.ok()) co_await endpoint->SendTo(packet->data, packet->from);
//
// A datagram comes whole or not at all, an empty one too; one that is longer than the
// room for it is cut off, and says so. Several tasks may receive: each gets
// what comes next, in the order in which they came. Receiving is one system call for
// as many datagrams as have come (up to 16), sending one for each; SendMany() and
// SendSegments() send many in one.
//
// An error is about what was sent before and does not end the endpoint: on a
// connected one, that nobody listens at the other port (ECONNREFUSED, by ICMP) is what
// the next call that receives or sends returns, instead of doing it. One that sends
// has to send again.
//
// A receive that is cancelled takes nothing: what has come is there for the next. A
// send may have sent.
//
// Close() lets the sends that wait for room in the kernel finish. Then, or at once if
// there are none, who receives gets CANCELLED.
//
// Errors: the kernel's, with the address, as EMSGSIZE for more than fits. EBADF once
// it is closed. RuntimeError in a task of another loop.
// Threads: belongs to the loop's thread.
// Python: loop.create_datagram_endpoint(), but that receiving is a call, and that
// sending says how it went.
class Datagram {
 public:
  Datagram() = default;  // None: good for nothing but to be assigned to.
  Datagram(Datagram&&) noexcept = default;
  Datagram& operator=(Datagram&& other) noexcept {
    if (this != &other) {
      Close();
      state_ = std::move(other.state_);
    }
    return *this;
  }
  ~Datagram() { Close(); }

  bool is_open() const { return state_ && state_->is_open(); }

  // Awaitable of StatusOr<Packet>: the next datagram.
  internal::ReceivePacketAwaiter Receive() { return internal::ReceivePacketAwaiter(state_); }

  // Awaitable of StatusOr<Received>: the same into the caller's memory, without
  // allocating; what is longer than that is cut off.
  internal::ReceiveIntoAwaiter ReceiveInto(absl::Span<char> into) {
    return internal::ReceiveIntoAwaiter(state_, into);
  }

  // Awaitable of Status: sends one datagram to whom it is connected to, or to `to`.
  // It waits only while the kernel has no room; then sends leave in their order.
  // `data` is the caller's, and has to stay until then.
  internal::SendDatagramAwaiter Send(std::string_view data) {
    return internal::SendDatagramAwaiter(state_, data, SockAddr());
  }
  internal::SendDatagramAwaiter SendTo(std::string_view data, const SocketAddress& to) {
    return internal::SendDatagramAwaiter(state_, data, to.ToNative());
  }

  // Sends several, in as few calls as the system allows. Returns how many have been
  // sent: all, or as many as before the first that failed; an error if that is the
  // first of all. The data is the caller's, and has to stay until then.
  Coro<absl::StatusOr<size_t>> SendMany(absl::Span<const Outgoing> datagrams);

  // Sends `data` as datagrams of `segment_size`, the last of which may be shorter: in
  // one call for up to 64 of them, where the kernel can cut them by itself (UDP on
  // Linux). Of an empty text it sends nothing. `to` none: to whom it is connected to.
  // Errors: ValueError if `segment_size` is 0.
  Coro<absl::Status> SendSegments(std::string_view data, size_t segment_size,
                                  SocketAddress to = SocketAddress());

  // Receives what is sent to a multicast group, by the interface of that number (0:
  // the system's choice), or no more. The endpoint is bound to the group's port.
  absl::Status JoinGroup(const SocketAddress& group, uint32_t interface = 0);
  absl::Status LeaveGroup(const SocketAddress& group, uint32_t interface = 0);

  // Does nothing the second time.
  void Close() {
    if (state_) state_->Close();
  }
  // Closes it now: sends that wait get CANCELLED as well.
  void Abort() {
    if (state_) state_->Abort();
  }

  absl::StatusOr<SocketAddress> LocalAddress() const { return state_->socket().LocalAddress(); }
  absl::StatusOr<SocketAddress> PeerAddress() const { return state_->socket().PeerAddress(); }

  // For its options. Sending, receiving and closing is the endpoint's.
  Socket& socket() { return state_->socket(); }
  const Socket& socket() const { return state_->socket(); }

  // -- For weft's own parts.
  explicit Datagram(internal::IntrusivePtr<internal::DatagramState> state)
      : state_(std::move(state)) {}

 private:
  internal::IntrusivePtr<internal::DatagramState> state_;
};

// Opens an endpoint at known addresses. A socket that an earlier one has left at the
// path of a Unix socket is replaced, anything else is not; the file goes when the
// endpoint is closed, unless another has taken its place.
// Errors: the kernel's, with the address. ValueError if `options.max_size` is 0.
// Python: loop.create_datagram_endpoint().
Coro<absl::StatusOr<Datagram>> OpenDatagram(DatagramOptions options = DatagramOptions());

// The same, connected to a host that may be a name: to the first of its addresses that
// there is a way to. `options.remote_address` does not count.
Coro<absl::StatusOr<Datagram>> OpenDatagram(std::string remote_host, uint16_t remote_port,
                                            DatagramOptions options = DatagramOptions());

}  // namespace weft

#endif  // WEFT_NET_DATAGRAM_H_

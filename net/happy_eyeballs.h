// Copyright 2026 The weft Authors.
// SPDX-License-Identifier: Apache-2.0

#ifndef WEFT_NET_HAPPY_EYEBALLS_H_
#define WEFT_NET_HAPPY_EYEBALLS_H_

#include <cstddef>
#include <functional>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/time/time.h"
#include "weft/core/coro.h"
#include "weft/net/resolver.h"
#include "weft/net/socket.h"

namespace weft::internal {

// How to connect to a host of which several addresses are known, some of which may
// not answer (RFC 8305): the attempts begin one after the other, each a little
// later than the one before or as soon as that has failed, and the first that
// succeeds wins.

// The same addresses, by turns of the two families (section 4 of the RFC), after
// `first_count` of the family that comes first; for 0, as they are. Within a family
// the order stays.
Addresses InterleaveFamilies(Addresses addresses, int first_count);

// Connects to the address of that index.
using ConnectAttempt = std::function<Coro<absl::StatusOr<Socket>>(size_t)>;

// Runs the attempts 0 to `count` - 1, each in a task of its own, and returns what the
// first gives that succeeds. The others are cancelled then, and have ended before
// this returns; so have all if it is cancelled. One begins when the one before has
// failed, at the latest `delay` after it began.
//
// `errors->at(i)` becomes why attempt i failed; it stays OK for one that was not made,
// or did not end by itself. If all fail, the result is the first of them. What an
// attempt throws counts as its failure, and is thrown in the end if none succeeds.
Coro<absl::StatusOr<Socket>> RaceToConnect(size_t count, absl::Duration delay,
                                           ConnectAttempt attempt,
                                           std::vector<absl::Status>* errors);

}  // namespace weft::internal

#endif  // WEFT_NET_HAPPY_EYEBALLS_H_

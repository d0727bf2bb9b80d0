// Copyright 2026 The weft Authors.
// SPDX-License-Identifier: Apache-2.0

#ifndef WEFT_TESTING_TEST_POLLER_H_
#define WEFT_TESTING_TEST_POLLER_H_

#include "absl/status/status.h"

namespace weft {

// Tests on a backend of one's choice.
//
//   weft_test(
//       name = "stream_test",
//       pollers = POLLERS,     # stream_test_on_io_uring, stream_test_on_poll
//       ...
//   )
//
// The same program runs with WEFT_POLLER set to another name. What is linked with this
// header's library looks before the first test whether that backend works on this
// machine. If not, all tests are skipped, with the reason, on a line that begins with
// `kPollerSkipped`; a name that nobody knows is a failure.
inline constexpr char kPollerSkipped[] = "not run on this machine: ";

// OK, or why no test can run: UNAVAILABLE if this machine has not what the backend of
// WEFT_POLLER needs, INVALID_ARGUMENT if there is none of that name.
absl::Status CheckTestPoller();

// Whether the kernel does what it is asked, as io_uring, and does not only say when it can
// be done. There what a stream sends leaves when the loop polls, and what is cancelled or
// closed has ended when the kernel has answered, some rounds later.
bool TestPollerCompletes();

}  // namespace weft

#endif  // WEFT_TESTING_TEST_POLLER_H_

// Copyright 2026 The weft Authors.
// SPDX-License-Identifier: Apache-2.0

#ifndef WEFT_POLLER_READINESS_TABLE_H_
#define WEFT_POLLER_READINESS_TABLE_H_

#include <cstddef>
#include <cstdint>

#include "weft/core/intrusive_list.h"
#include "weft/core/runnable.h"
#include "weft/poller/direction.h"
#include "weft/poller/entry_queue.h"
#include "weft/poller/handle_table.h"
#include "weft/poller/native_handle.h"
#include "weft/poller/operation.h"
#include "weft/poller/poller.h"
#include "weft/poller/slab_pool.h"

namespace weft::internal {

// What a backend reports about a handle. An end or an error is both readable and
// writable: whoever waits finds out by trying.
struct Readiness {
  bool readable = false;
  bool writable = false;
  // A hang-up, an error or urgent data: from now on a short read says nothing.
  bool is_exceptional = false;
};

// How a handle is to be watched.
struct Interest {
  bool edge = false;  // Changes of both directions; else states, again and again.
  bool read = false;  // Without `edge`: which states.
  bool write = false;
};

// ReadinessSource
//
// All that a readiness kernel is asked for.
class ReadinessSource {
 public:
  // Makes the kernel report about `handle` as `interest` says, in the name of
  // `generation`, beginning with what is ready now. `is_known`: it should be
  // watched already, and only the rest changes.
  //
  // Returns 0 or a negated errno. -ENOENT: `is_known` was wrong, the number has
  // come back for another file. -EPERM: not a kind that one can wait for.
  virtual int Watch(NativeHandle handle, uint32_t generation, Interest interest, bool is_known) = 0;

  // Ends it. False if the kernel goes on reporting, because the number no longer
  // stands for the file that is watched.
  virtual bool Forget(NativeHandle handle) = 0;

 protected:
  ~ReadinessSource() = default;
};

// ReadinessTable
//
// What all backends have in common whose kernel says when, and does not do it
// itself: epoll, kqueue, poll. It tries an operation at once, parks it when it
// would block, and tries it again when the handle is reported.
//
//   StartResult Start(Operation* op) override { return table_.Start(op); }
//   ... for each event: table_.Report(handle, generation, readiness, done);
//
// There is an entry per handle, by number. It is watched in one of two ways:
//
//   edge    From the first operation that has to wait until the handle is
//           retired. Reported when something changes; the entry remembers for
//           each direction whether it may be ready, so that one that cannot be is
//           parked without a system call.
//   level   While it is used by wait operations only. Reported by every poll while
//           it is in that state, so that going on to wait costs nothing. When a
//           report finds nobody waiting, the interest is narrowed or dropped.
//
// Guarantees:
//   * Operations on one handle and direction end in the order of their start
//     (wait operations, which take nothing, may be ahead).
//   * A report ends at most `kMaxServed` operations a direction; the others are
//     served by `ServeKicked()`, before the next poll.
//   * An event in the name of an old generation reaches nobody.
//   * No allocation but a page of entries when a higher number than ever is
//     used.
//
// Threads: belongs to the loop's thread.
class ReadinessTable {
 public:
  static constexpr int kMaxServed = 32;

  // `ended` and `pending` are the poller's.
  ReadinessTable(ReadinessSource* source, ReadyQueue* ended, size_t* pending)
      : source_(source), ended_(ended), pending_(pending) {}
  ReadinessTable(const ReadinessTable&) = delete;
  ReadinessTable& operator=(const ReadinessTable&) = delete;

  // What is parked is `kDone` with -ECANCELED, and queued nowhere.
  ~ReadinessTable();

  // As those of `Poller`.
  StartResult Start(Operation* op);
  void Cancel(Operation* op);
  void CancelAll();
  StartResult FetchLent(Operation* op, SlabPool* pool, Slab* slab);

  // Finishes what waits for this, into `done`. False if the report is stale: it
  // is about a file that the number no longer stands for, and the kernel may
  // repeat it for ever.
  bool Report(NativeHandle handle, uint32_t generation, Readiness readiness, ReadyQueue* done);

  // Whether a handle is known to have more for those who wait than was served.
  bool has_kicked() const { return !kicked_.empty(); }

  // Serves them; to be called before each poll.
  void ServeKicked(ReadyQueue* done);

  // The number is not open any more, as its kernel says: what waits for it ends
  // with -EBADF. Does nothing if `generation` is an old one.
  void Lose(NativeHandle handle, uint32_t generation);

  // For a kernel that reports states where changes were asked for: what somebody
  // waits for on `handle`.
  Interest WaitingFor(NativeHandle handle) const;

  // Says `Watch()` for every handle that is watched: after the backend had to open
  // its kernel object anew.
  void WatchAgain();

 private:
  enum class Mode : uint8_t { kUnwatched, kLevel, kEdge };
  enum class Kind : uint8_t { kUnknown, kTcp, kOther };

  struct Entry {
    List<Operation> parked[2];
    uint32_t generation = 1;
    Mode mode = Mode::kUnwatched;
    Kind kind = Kind::kUnknown;
    uint8_t level = 0;             // Bits of the directions watched in `kLevel`.
    bool maybe[2] = {true, true};  // False: the kernel said no, and no report since.
    bool saw_exceptional = false;  // Sticky, for this registration.
    bool has_lent = false;         // One is announced and not fetched: others wait.
    Entry* next_kicked = nullptr;
  };

  // What the table keeps in an operation.
  struct Note {
    uint64_t sequence;    // The order of starting.
    uint32_t generation;  // The entry's, at the start.
    bool is_connecting;
    bool is_unfetched;
  };

  static Note* NoteOf(Operation* op);
  static uint8_t Bit(Direction direction) { return static_cast<uint8_t>(1 << direction); }
  static uint8_t WaitingBits(const Entry& entry);
  static bool MustWait(const Entry& entry, Direction direction);

  StartResult StartWait(Operation* op);
  StartResult StartLent(Operation* op);
  StartResult Retire(Operation* op);
  StartResult Done(Operation* op, int64_t result);
  StartResult Park(Entry* entry, Operation* op, bool in_front = false);
  StartResult WatchAndPark(Entry* entry, Operation* op, bool in_front = false);

  int WatchEdges(NativeHandle handle, Entry* entry);
  int WatchLevels(NativeHandle handle, Entry* entry, Direction direction);
  bool Narrow(NativeHandle handle, Entry* entry);

  int64_t Attempt(Operation* op);
  void Learn(Entry* entry, const Operation& op, int64_t result, size_t asked);
  void Serve(NativeHandle handle, Entry* entry, Direction direction, ReadyQueue* done);
  bool FinishWaits(Entry* entry, Direction direction, ReadyQueue* done);
  void Finish(Operation* op, int64_t result, ReadyQueue* done);
  void Announce(Entry* entry, Operation* op);
  Entry* TakeTurn(Operation* op);
  void KickIfWaiting(Entry* entry);

  void EndParked(Entry* entry, int64_t result);
  void Reset(Entry* entry);
  void Abandon(Entry* entry);

  ReadinessSource* const source_;
  ReadyQueue* const ended_;
  size_t* const pending_;
  HandleTable<Entry> entries_;
  uint64_t next_sequence_ = 0;
  EntryQueue<Entry, &Entry::next_kicked> kicked_;  // They have more for those who wait.
};

}  // namespace weft::internal

#endif  // WEFT_POLLER_READINESS_TABLE_H_

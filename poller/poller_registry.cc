// Copyright 2026 The weft Authors.
// SPDX-License-Identifier: Apache-2.0

#include "weft/poller/poller_registry.h"

#include <algorithm>
#include <cstdlib>
#include <mutex>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "weft/poller/builtin_pollers.h"

namespace weft {

namespace {

// A backend, and what is known of it.
struct Entry {
  PollerBackend backend;
  bool works = false;  // It was probed and works; a failure is probed again.
};

struct Registry {
  std::mutex mutex;
  std::vector<Entry> entries;  // By falling priority.
};

void Insert(std::vector<Entry>* entries, PollerBackend backend) {
  entries->erase(std::remove_if(entries->begin(), entries->end(),
                                [&](const Entry& old) { return old.backend.name == backend.name; }),
                 entries->end());
  const auto place = std::find_if(entries->begin(), entries->end(), [&](const Entry& old) {
    return old.backend.priority < backend.priority;
  });
  entries->insert(place, Entry{std::move(backend)});
}

// Never destroyed: threads may ask while the program ends.
Registry& TheRegistry() {
  static Registry* const registry = [] {
    auto* made = new Registry;
    for (PollerBackend& builtin : internal::BuiltinPollers()) {
      Insert(&made->entries, std::move(builtin));
    }
    return made;
  }();
  return *registry;
}

std::vector<Entry> Snapshot() {
  Registry& registry = TheRegistry();
  std::lock_guard<std::mutex> lock(registry.mutex);
  return registry.entries;
}

// Whether `entry` works here. Remembers that it does: a loop is made in less time
// than a probe takes.
absl::Status Probe(const Entry& entry) {
  if (entry.works || entry.backend.probe == nullptr) return absl::OkStatus();
  absl::Status status = entry.backend.probe();
  if (!status.ok()) return status;
  Registry& registry = TheRegistry();
  std::lock_guard<std::mutex> lock(registry.mutex);
  for (Entry& known : registry.entries) {
    if (known.backend.name == entry.backend.name && known.backend.probe == entry.backend.probe) {
      known.works = true;
    }
  }
  return status;
}

absl::Status UnknownName(std::string_view name, bool is_from_environment,
                         const std::vector<Entry>& entries) {
  const auto append_name = [](std::string* out, const Entry& entry) {
    out->append(entry.backend.name);
  };
  return absl::InvalidArgumentError(
      absl::StrCat("there is no poller '", std::string(name), "'",
                   is_from_environment ? " (from WEFT_POLLER)" : "",
                   "; known: ", absl::StrJoin(entries, ", ", append_name)));
}

}  // namespace

void RegisterPoller(PollerBackend backend) {
  Registry& registry = TheRegistry();
  std::lock_guard<std::mutex> lock(registry.mutex);
  Insert(&registry.entries, std::move(backend));
}

std::string ResolvePollerName(std::string_view chosen) {
  if (!chosen.empty()) return std::string(chosen);
  const char* from_environment = std::getenv("WEFT_POLLER");
  if (from_environment != nullptr && *from_environment != '\0') return from_environment;
  return DefaultPollerName();
}

std::string DefaultPollerName() {
  for (const Entry& entry : Snapshot()) {
    if (entry.backend.priority >= 0 && Probe(entry).ok()) return entry.backend.name;
  }
  return "";
}

namespace {

// How to make the poller that is meant by `name`, if it is known to work: what is asked
// whenever a loop is made, and so copies nothing. Else null.
auto KnownToWork(std::string_view name) -> decltype(PollerBackend::make) {
  if (name.empty()) {
    const char* from_environment = std::getenv("WEFT_POLLER");
    if (from_environment != nullptr) name = from_environment;
  }
  Registry& registry = TheRegistry();
  std::lock_guard<std::mutex> lock(registry.mutex);
  for (const Entry& entry : registry.entries) {
    const bool is_meant = name.empty() ? entry.backend.priority >= 0 : entry.backend.name == name;
    if (!is_meant) continue;
    return entry.works || entry.backend.probe == nullptr ? entry.backend.make : nullptr;
  }
  return nullptr;
}

}  // namespace

absl::StatusOr<std::unique_ptr<Poller>> MakePoller(std::string_view name) {
  if (const auto make = KnownToWork(name)) return make();
  const std::string resolved = ResolvePollerName(name);
  const std::vector<Entry> entries = Snapshot();
  if (resolved.empty()) return absl::UnavailableError("no poller works here");
  for (const Entry& entry : entries) {
    if (entry.backend.name != resolved) continue;
    const absl::Status probed = Probe(entry);
    if (!probed.ok()) {
      return absl::UnavailableError(
          absl::StrCat("poller '", resolved, "' does not work here: ", probed.message()));
    }
    return entry.backend.make();
  }
  return UnknownName(resolved, /*is_from_environment=*/name.empty(), entries);
}

std::vector<PollerInfo> AvailablePollers() {
  std::vector<PollerInfo> infos;
  for (const Entry& entry : Snapshot()) infos.push_back({entry.backend.name, Probe(entry)});
  return infos;
}

}  // namespace weft

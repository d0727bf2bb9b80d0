// Copyright 2026 The weft Authors.
// SPDX-License-Identifier: Apache-2.0

// In place of Apple's header, where there is no SDK: builds by zig. Abseil's time zones are its
// only user, and take "no time zone" for a reason to read /etc/localtime.

#ifndef WEFT_TOOLCHAINS_DARWIN_STUB_COREFOUNDATION_CFTIMEZONE_H_
#define WEFT_TOOLCHAINS_DARWIN_STUB_COREFOUNDATION_CFTIMEZONE_H_

using CFIndex = long;
using CFStringEncoding = unsigned int;
using CFStringRef = const struct __CFString*;
using CFTimeZoneRef = const struct __CFTimeZone*;
using CFTypeRef = const void*;

inline constexpr CFStringEncoding kCFStringEncodingUTF8 = 0x08000100;

inline CFTimeZoneRef CFTimeZoneCopyDefault() { return nullptr; }
inline CFStringRef CFTimeZoneGetName(CFTimeZoneRef) { return nullptr; }
inline CFIndex CFStringGetLength(CFStringRef) { return 0; }
inline CFIndex CFStringGetMaximumSizeForEncoding(CFIndex length, CFStringEncoding) {
  return length;
}
inline bool CFStringGetCString(CFStringRef, char*, CFIndex, CFStringEncoding) { return false; }
inline void CFRelease(CFTypeRef) {}

#endif  // WEFT_TOOLCHAINS_DARWIN_STUB_COREFOUNDATION_CFTIMEZONE_H_

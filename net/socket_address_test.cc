// Copyright 2026 The weft Authors.
// SPDX-License-Identifier: Apache-2.0

#include "weft/net/socket_address.h"

#include <string>

#include "absl/strings/str_cat.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace weft {
namespace {

using ::testing::HasSubstr;

std::string ParseError(std::string_view text) {
  absl::StatusOr<SocketAddress> address = SocketAddress::Parse(text);
  if (address.ok()) return "parsed as " + address->ToString();
  EXPECT_EQ(address.status().code(), absl::StatusCode::kInvalidArgument);
  return std::string(address.status().message());
}

class RoundTripTest : public ::testing::TestWithParam<const char*> {};

TEST_P(RoundTripTest, PrintsWhatItParsed) {
  absl::StatusOr<SocketAddress> address = SocketAddress::Parse(GetParam());
  ASSERT_TRUE(address.ok()) << address.status();
  EXPECT_EQ(address->ToString(), GetParam());
  EXPECT_EQ(SocketAddress::FromNative(address->ToNative()), *address);
}

INSTANTIATE_TEST_SUITE_P(All, RoundTripTest,
                         ::testing::Values("127.0.0.1:80", "0.0.0.0:0", "255.255.255.255:65535",
                                           "[::1]:80", "[::]:0", "[fe80::1%7]:443",
                                           "[2001:db8::8a2e:370:7334]:1", "[::ffff:1.2.3.4]:5",
                                           "unix:/run/x.sock", "unix:relative", "unix:@abstract",
                                           "unix:@", "unix:./@file", "unix:/with:colon"));

TEST(SocketAddressTest, HasParts) {
  SocketAddress v4 = SocketAddress::Parse("10.1.2.3:4567").value();
  EXPECT_EQ(v4.family(), SocketAddress::Family::kIpv4);
  EXPECT_EQ(v4.host(), "10.1.2.3");
  EXPECT_EQ(v4.port(), 4567);
  EXPECT_EQ(v4.domain(), SocketDomain::kInet);

  SocketAddress v6 = SocketAddress::Parse("[fe80::2%3]:1").value();
  EXPECT_EQ(v6.host(), "fe80::2%3");
  EXPECT_EQ(v6.scope_id(), 3u);
  EXPECT_EQ(v6.domain(), SocketDomain::kInet6);

  SocketAddress file = SocketAddress::Parse("unix:/a/b").value();
  EXPECT_TRUE(file.is_unix());
  EXPECT_FALSE(file.is_abstract());
  EXPECT_EQ(file.path(), "/a/b");
  EXPECT_EQ(file.port(), 0);

  SocketAddress abstract = SocketAddress::Parse("unix:@a").value();
  EXPECT_TRUE(abstract.is_abstract());
  EXPECT_EQ(abstract.path(), std::string("\0a", 2));
}

TEST(SocketAddressTest, KnowsLoopbackAndAny) {
  EXPECT_TRUE(SocketAddress::Ipv4Loopback(1).is_loopback());
  EXPECT_TRUE(SocketAddress::Ipv6Loopback(1).is_loopback());
  EXPECT_FALSE(SocketAddress::Ipv4Any(1).is_loopback());
  EXPECT_TRUE(SocketAddress::Ipv4Any(1).is_any());
  EXPECT_TRUE(SocketAddress::Ipv6Any(1).is_any());
  EXPECT_FALSE(SocketAddress().is_any());
  EXPECT_EQ(SocketAddress().ToString(), "no address");
}

TEST(SocketAddressTest, TakesNamesOfInterfaces) {
  // What systems call the loopback interface: Linux, macOS, Windows, Wine.
  absl::StatusOr<SocketAddress> address = absl::NotFoundError("no system");
  for (const char* name : {"lo", "lo0", "loopback_0", "loopback_1"}) {
    address = SocketAddress::FromHost(absl::StrCat("fe80::1%", name), 80);
    if (address.ok()) break;
  }
  ASSERT_TRUE(address.ok()) << address.status();
  EXPECT_NE(address->scope_id(), 0u);
}

// What does not parse is named in the message.
TEST(SocketAddressTest, RefusesWhatIsNoAddress) {
  for (const char* text : {"",
                           ":",
                           "127.0.0.1",
                           "localhost:80",
                           "127.0.0.1:",
                           "127.0.0.1:x",
                           "127.0.0.1:-1",
                           "127.0.0.1:+1",
                           "127.0.0.1: 1",
                           "127.0.0.1:65536",
                           "127.0.0.1:100000000000000000000",
                           "127.0.0.1:80 ",
                           " 127.0.0.1:80",
                           "127.1:80",
                           "256.0.0.1:80",
                           "1.2.3.4.5:80",
                           "[127.0.0.1]:80",
                           "::1",
                           "::1:80",
                           "[::1]",
                           "[::1]80",
                           "[::1:80",
                           "::1]:80",
                           "[]:80",
                           "[::g]:1",
                           "[fe80::1%nosuchif0]:1",
                           "[fe80::1%]:1",
                           "unix:",
                           "unix"}) {
    EXPECT_THAT(ParseError(text), HasSubstr(std::string("\"") + text + "\"")) << text;
  }
}

TEST(SocketAddressTest, DoesNotStopAtANul) {
  EXPECT_THAT(ParseError(std::string_view("127.0.0.1\0x:80", 14)), HasSubstr("\\x00"));
  EXPECT_THAT(ParseError(std::string_view("127.0.0.1:80\0", 13)), HasSubstr("port"));
  EXPECT_THAT(ParseError(std::string_view("unix:/a\0b", 9)), HasSubstr("NUL"));
  EXPECT_THAT(ParseError(std::string_view("unix:\0b", 7)), HasSubstr("unix:@name"));
}

// UNIX 270
TEST(SocketAddressTest, RefusesAUnixPathThatIsTooLong) {
  const std::string longest(107, 'x');
  EXPECT_TRUE(SocketAddress::FromUnixPath(longest).ok());
  EXPECT_TRUE(SocketAddress::FromAbstractName(longest).ok());

  EXPECT_THAT(ParseError("unix:" + longest + "x"), HasSubstr("AF_UNIX path too long"));
  EXPECT_THAT(ParseError("unix:@" + longest + "x"), HasSubstr("AF_UNIX path too long"));
}

TEST(SocketAddressTest, AnAbstractNameIsNotNothingButNuls) {
  const std::string nuls(3, '\0');

  EXPECT_THAT(ParseError("unix:@" + nuls), HasSubstr("nothing but NULs"));
  EXPECT_FALSE(SocketAddress::FromUnixPath(nuls).ok());
  EXPECT_TRUE(SocketAddress::FromAbstractName(nuls + "x").ok());
  EXPECT_TRUE(SocketAddress::FromAbstractName("").ok());
}

TEST(SocketAddressTest, NamelessAndUnknownNativeAddresses) {
  EXPECT_TRUE(SocketAddress::FromNative(SockAddr()).is_none());
  EXPECT_EQ(SocketAddress().ToNative().length, 0u);
  SockAddr unknown;
  unknown.bytes[0] = 99;
  unknown.length = 16;
  EXPECT_TRUE(SocketAddress::FromNative(unknown).is_none());
  SockAddr nameless;
  nameless.bytes[0] = 1;  // AF_UNIX.
  nameless.length = 2;
  EXPECT_EQ(SocketAddress::FromNative(nameless).ToString(), "unix:");
}

}  // namespace
}  // namespace weft

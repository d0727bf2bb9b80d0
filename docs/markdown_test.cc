// Copyright 2026 The weft Authors.
// SPDX-License-Identifier: Apache-2.0

// The pages hold the code that the other files here compile. A page names it in a
// comment above the block,
//
//   <!-- snippet: NAME -->
//
// and the code stands between "// [snippet NAME]" and "// [end]" in one of the
// sources. Code that is wrong on purpose says so instead: <!-- wrong: WHY -->.

#include <algorithm>
#include <fstream>
#include <map>
#include <set>
#include <sstream>
#include <string>
#include <string_view>
#include <vector>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "absl/strings/str_split.h"
#include "absl/strings/strip.h"
#include "gtest/gtest.h"

namespace weft {
namespace {

const char* const kPages[] = {
    "README.md",      "docs/tour.md",      "docs/guide.md",    "docs/asyncio.md",
    "docs/design.md", "docs/debugging.md", "docs/backends.md",
};
const char* const kSources[] = {"docs/hello.cc",
                                "docs/echo.cc",
                                "docs/snippets_test.cc",
                                "docs/net_snippets_test.cc",
                                "docs/tls_snippets_test.cc",
                                "docs/select_poller.cc",
                                "docs/select_poller_test.cc"};

std::vector<std::string> Lines(const std::string& path) {
  std::ifstream file(path);
  EXPECT_TRUE(file.is_open()) << path;
  std::ostringstream text;
  text << file.rdbuf();
  return absl::StrSplit(text.str(), '\n');
}

// Joined, and moved to the left.
std::string Code(const std::vector<std::string>& lines) {
  size_t indent = std::string::npos;
  for (const std::string& line : lines) {
    indent = std::min(indent, line.find_first_not_of(' '));
  }
  std::string code;
  for (const std::string& line : lines) {
    absl::StrAppend(&code, line.substr(std::min(indent, line.size())), "\n");
  }
  return code;
}

// All that lies between markers, by name.
std::map<std::string, std::string> Snippets() {
  std::map<std::string, std::string> snippets;
  for (const char* source : kSources) {
    std::string name;
    std::vector<std::string> lines;
    for (const std::string& line : Lines(source)) {
      std::string_view marker = absl::StripLeadingAsciiWhitespace(line);
      if (absl::ConsumePrefix(&marker, "// [snippet ")) {
        EXPECT_TRUE(name.empty()) << source << ": " << name << " does not end";
        name = std::string(absl::StripSuffix(marker, "]"));
        lines.clear();
      } else if (marker == "// [end]") {
        EXPECT_TRUE(snippets.emplace(name, Code(lines)).second) << source << ": " << name;
        name.clear();
      } else if (!name.empty()) {
        lines.push_back(line);
      }
    }
    EXPECT_TRUE(name.empty()) << source << ": " << name << " does not end";
  }
  return snippets;
}

TEST(MarkdownTest, EveryBlockOfCodeIsCompiled) {
  const std::map<std::string, std::string> snippets = Snippets();
  std::set<std::string> used;

  for (const char* page : kPages) {
    const std::vector<std::string> lines = Lines(page);
    for (size_t i = 0; i < lines.size(); ++i) {
      if (lines[i] != "```cpp") continue;
      const std::string where = absl::StrCat(page, ":", i + 1);
      std::vector<std::string> block;
      std::string_view above;
      if (i > 0) above = lines[i - 1];
      while (++i < lines.size() && lines[i] != "```") block.push_back(lines[i]);
      if (absl::StartsWith(above, "<!-- wrong: ")) continue;
      if (!absl::ConsumePrefix(&above, "<!-- snippet: ") || !absl::ConsumeSuffix(&above, " -->")) {
        ADD_FAILURE() << where << ": no <!-- snippet: NAME --> above";
        continue;
      }
      const auto found = snippets.find(std::string(above));
      if (found == snippets.end()) {
        ADD_FAILURE() << where << ": there is no snippet " << above;
        continue;
      }
      EXPECT_EQ(Code(block), found->second) << where;
      used.insert(found->first);
    }
  }

  for (const auto& [name, code] : snippets) {
    EXPECT_TRUE(used.contains(name)) << name << " stands on no page";
  }
}

}  // namespace
}  // namespace weft

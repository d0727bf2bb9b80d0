// Copyright 2026 The weft Authors.
// SPDX-License-Identifier: Apache-2.0

// A fuzz target as an ordinary test: runs the inputs of a corpus, and then mutants of them,
// which are the same in every run. No coverage guides it; it finds what has broken, and
// libFuzzer (--config=fuzz) what nobody has thought of.
//
//   NAME_fuzz_test FOLDER|FILE... [-mutants=N]
//
// The input at hand lies in "input" in the test's undeclared outputs, which Bazel keeps as
// bazel-testlogs/.../test.outputs/outputs.zip if the test fails.

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <iostream>
#include <iterator>
#include <random>
#include <string>
#include <string_view>
#include <vector>

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size);

namespace {

constexpr size_t kLongest = 4096;  // That a mutant grows to.

std::string ReadFile(const std::filesystem::path& path) {
  std::ifstream file(path, std::ios::binary);
  return std::string(std::istreambuf_iterator<char>(file), std::istreambuf_iterator<char>());
}

// Sorted by their names, so that a run is as the other.
std::vector<std::string> ReadCorpus(const std::vector<std::string>& paths) {
  std::vector<std::filesystem::path> files;
  for (const std::string& path : paths) {
    if (!std::filesystem::is_directory(path)) {
      files.emplace_back(path);
      continue;
    }
    for (const auto& entry : std::filesystem::directory_iterator(path)) {
      files.push_back(entry.path());
    }
  }
  std::sort(files.begin(), files.end());
  std::vector<std::string> corpus;
  for (const std::filesystem::path& file : files) corpus.push_back(ReadFile(file));
  return corpus;
}

class Mutator {
 public:
  explicit Mutator(const std::vector<std::string>& corpus) : corpus_(corpus) {}

  std::string Next() {
    std::string text = Any();
    for (size_t left = 1 + Below(5); left > 0; --left) Mutate(&text);
    text.resize(std::min(text.size(), kLongest));
    return text;
  }

 private:
  size_t Below(size_t bound) { return random_() % bound; }
  const std::string& Any() { return corpus_[Below(corpus_.size())]; }

  void Mutate(std::string* text) {
    static constexpr char kSpecial[] = {'\0', '\1', '\x7F', '\x80', '\xFF', '\r', '\n', '0', '-'};
    const size_t place = Below(text->size() + 1);
    const size_t count = Below(std::min<size_t>(text->size() - place, 32) + 1);
    if (place == text->size()) {
      text->push_back(static_cast<char>(random_()));
      return;
    }
    switch (Below(8)) {
      case 0:
        (*text)[place] = static_cast<char>((*text)[place] ^ 1 << Below(8));
        break;
      case 1:
        (*text)[place] = static_cast<char>(random_());
        break;
      case 2:
        (*text)[place] = kSpecial[Below(std::size(kSpecial))];
        break;
      case 3:
        (*text)[place] = static_cast<char>((*text)[place] + (Below(2) == 0 ? 1 : -1));
        break;
      case 4:
        text->erase(place, count);
        break;
      case 5:
        text->insert(Below(text->size() + 1), text->substr(place, count));
        break;
      case 6:
        text->insert(place, 1 + Below(8), static_cast<char>(random_()));
        break;
      case 7: {
        const std::string& other = Any();
        text->replace(place, count, other.substr(Below(other.size() + 1), Below(64)));
        break;
      }
    }
  }

  const std::vector<std::string>& corpus_;
  std::mt19937 random_;  // NOLINT(bugprone-random-generator-seed): the same in every run.
};

void RunOne(const std::string& input, const std::string& kept) {
  if (!kept.empty()) std::ofstream(kept, std::ios::binary) << input;
  // Its own block, so that a sanitizer sees whoever reads past the end.
  const std::vector<uint8_t> bytes(input.begin(), input.end());
  LLVMFuzzerTestOneInput(bytes.data(), bytes.size());
}

}  // namespace

int main(int argc, char** argv) {
  constexpr std::string_view kMutants = "-mutants=";
  int mutants = 3000;
  std::vector<std::string> paths;
  for (int i = 1; i < argc; ++i) {
    const std::string_view argument = argv[i];
    if (argument.substr(0, kMutants.size()) == kMutants) {
      mutants = std::atoi(argv[i] + kMutants.size());
    } else {
      paths.emplace_back(argument);
    }
  }
  std::vector<std::string> corpus = ReadCorpus(paths);
  if (corpus.empty()) {
    std::cerr << "there is no corpus\n";
    return 1;
  }
  const char* outputs = std::getenv("TEST_UNDECLARED_OUTPUTS_DIR");
  const std::string kept = outputs == nullptr ? "" : std::string(outputs) + "/input";

  for (const std::string& input : corpus) RunOne(input, kept);
  const size_t size = corpus.size();
  corpus.emplace_back();
  Mutator mutator(corpus);
  for (int i = 0; i < mutants; ++i) RunOne(mutator.Next(), kept);
  if (!kept.empty()) std::filesystem::remove(kept);
  std::cout << "ran a corpus of " << size << ", and " << mutants << " mutants\n";
  return 0;
}

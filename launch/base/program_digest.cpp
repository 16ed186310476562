#include "base/program_digest.h"

#include <elf.h>

#include <algorithm>
#include <array>
#include <cstdio>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <memory>
#include <set>

#include "base/program.h"
#include "base/text.h"

namespace catena::launch {
namespace {

namespace fs = std::filesystem;

void add_file(Digests& digests, const fs::path& path) {
  const std::string digest = file_digest(path.string());
  if (!digest.empty()) digests[path.filename().string()] = digest;
}

// The loader that a program asks for; "" for anything but a 64-bit program with shared libraries.
std::string loader_of(const std::string& path) {
  std::ifstream file(path, std::ios::binary);
  Elf64_Ehdr header{};
  file.read(reinterpret_cast<char*>(&header), sizeof(header));
  const bool elf = file && std::equal(ELFMAG, ELFMAG + SELFMAG, header.e_ident) &&
                   header.e_ident[EI_CLASS] == ELFCLASS64 &&
                   header.e_phentsize == sizeof(Elf64_Phdr);
  for (int i = 0; elf && i < header.e_phnum; ++i) {
    Elf64_Phdr segment{};
    file.seekg(static_cast<std::streamoff>(header.e_phoff + sizeof(segment) * unsigned(i)));
    file.read(reinterpret_cast<char*>(&segment), sizeof(segment));
    if (!file || segment.p_type != PT_INTERP || segment.p_filesz > 4096) continue;
    std::string name(segment.p_filesz, '\0');
    file.seekg(static_cast<std::streamoff>(segment.p_offset));
    file.read(name.data(), static_cast<std::streamsize>(name.size()));
    return file ? std::string(name.c_str()) : "";
  }
  return "";
}

// The libcatena that the program would load: the loader is asked, which starts nothing.
std::string library_of(const std::string& program) {
  const std::string loader = loader_of(program);
  if (loader.empty() || !fs::exists(loader)) return "";
  const std::string command = shell_quote(loader) + " --list " +
                              shell_quote(fs::absolute(program).string()) +
                              " 2>/dev/null </dev/null";
  const std::unique_ptr<FILE, int (*)(FILE*)> pipe(popen(command.c_str(), "r"), pclose);
  std::array<char, 4096> line;
  std::string found;
  while (pipe && std::fgets(line.data(), line.size(), pipe.get())) {
    const std::string text(trim(line.data()));  // "libcatena.so.0 => /lib/libcatena.so.0 (0x7f...)"
    const std::size_t arrow = text.find(" => "), address = text.rfind(" (");
    if (!text.starts_with("libcatena.so") || arrow == std::string::npos ||
        address == std::string::npos || address < arrow + 4)
      continue;
    found = text.substr(arrow + 4, address - arrow - 4);
  }
  return found;
}

void add_library(Digests& digests, const std::string& library) {
  add_file(digests, library);
  std::error_code error;
  const char* named = std::getenv("CATENA_PLUGIN_PATH");
  std::vector<std::string> folders = split(named ? named : "", ':');
  folders.push_back(fs::canonical(library, error).parent_path().string());
  std::set<std::string> seen;
  for (const std::string& folder : folders)
    for (fs::directory_iterator entry(folder, error), end; !error && entry != end;
         entry.increment(error)) {
      const std::string name = entry->path().filename().string();
      const bool plugin = name.starts_with("libcatena_") && name.ends_with(".so");
      if (plugin && seen.insert(name).second) add_file(digests, entry->path());
    }
}

bool is_interpreter(const std::string& name) {
  constexpr std::array kNames = {"python", "perl", "ruby", "bash",  "sh",
                                 "dash",   "node", "lua",  "julia", "Rscript"};
  return std::any_of(kNames.begin(), kNames.end(), [&](const std::string known) {
    // With a version: python3.11
    return name.starts_with(known) &&
           name.find_first_not_of("0123456789.", known.size()) == std::string::npos;
  });
}

// The file that an interpreter is given, "" when the program text is in its arguments.
std::string script_of(const std::vector<std::string>& program) {
  if (!is_interpreter(fs::path(program.front()).filename().string())) return "";
  for (std::size_t i = 1; i < program.size(); ++i) {
    if (program[i] == "-c" || program[i] == "-e" || program[i] == "-m") return "";
    std::error_code error;
    if (!program[i].starts_with('-'))
      return fs::is_regular_file(program[i], error) ? program[i] : "";
  }
  return "";
}

}  // namespace

Digests program_digests(const std::vector<std::string>& program) {
  Digests digests;
  const auto file = find_executable(program.front());
  if (!file) return digests;
  add_file(digests, *file);
  if (const std::string library = library_of(*file); !library.empty())
    add_library(digests, library);
  if (const std::string script = script_of(program); !script.empty()) add_file(digests, script);
  return digests;
}

std::optional<FileDifference> find_difference(const std::string& host, const Digests& digests,
                                              const std::string& other_host,
                                              const Digests& other_digests) {
  const auto value = [](const Digests& all, const std::string& name) {
    const auto found = all.find(name);
    return found == all.end() ? std::string("none") : found->second;
  };
  std::set<std::string> names;
  for (const Digests* all : {&digests, &other_digests})
    for (const auto& [name, ignored] : *all) names.insert(name);
  for (const std::string& name : names) {
    const std::string mine = value(digests, name), theirs = value(other_digests, name);
    if (mine != theirs) return FileDifference{name, host, mine, other_host, theirs};
  }
  return std::nullopt;
}

}  // namespace catena::launch

// Turns the ```cpp blocks of a tutorial into one program that runs them in order:
//
//   guide_extract page.md program.cpp expected.txt
//
// A block with its own main() is a program by itself. Of the others, those that begin with a
// declaration (#include, using, struct, inline ...) go to file scope, and the statements of a
// section (from one heading to the next) become one function. ```output blocks are what the program
// must print.
#include <exception>
#include <fstream>
#include <iostream>
#include <sstream>
#include <stdexcept>
#include <string>
#include <vector>

namespace {

struct Block {
  std::string kind;  // "cpp", "output"
  int section;       // headings before it
  int line;          // of its first line in the page
  std::vector<std::string> lines;
};

bool begins_with(const std::string& text, const std::string& start) {
  return text.rfind(start, 0) == 0;
}

std::vector<Block> read_blocks(const std::string& path) {
  std::ifstream page(path);
  if (!page) throw std::runtime_error("cannot read " + path);
  std::vector<Block> blocks;
  std::string line;
  bool inside = false;
  int section = 0;
  for (int number = 1; std::getline(page, line); ++number) {
    if (begins_with(line, "```")) {
      if (!inside) blocks.push_back({line.substr(3), section, number + 1, {}});
      inside = !inside;
    } else if (inside) {
      blocks.back().lines.push_back(line);
    } else if (begins_with(line, "#")) {
      ++section;
    }
  }
  if (inside) throw std::runtime_error(path + ": a block does not end");
  return blocks;
}

bool is_program(const Block& block) {
  for (const std::string& line : block.lines)
    if (begins_with(line, "int main(")) return true;
  return false;
}

bool is_declaration(const Block& block) {
  for (const std::string& line : block.lines) {
    if (line.empty() || begins_with(line, "//")) continue;
    for (const char* start :
         {"#include", "using ", "namespace ", "struct ", "class ", "template", "inline "})
      if (begins_with(line, start)) return true;
    return false;
  }
  return false;
}

class Program {
 public:
  explicit Program(std::string page) : page_(std::move(page)) {}

  void add(const Block& block) {
    if (is_program(block)) {
      end_section();
      add_program(block);
    } else if (is_declaration(block)) {
      code_ << text_of(block);
    } else {
      if (block.section != section_) end_section();
      section_ = block.section;
      statements_ << text_of(block);
    }
  }

  std::string text() {
    end_section();
    std::ostringstream all;
    all << "// Made from " << page_ << "; change that.\n#include <cstdio>\n#include <exception>\n\n"
        << includes_.str() << "\nnamespace guide {\n"
        << code_.str() << "}  // namespace guide\n\n"
        << "int main([[maybe_unused]] int argc, [[maybe_unused]] char** argv) {\n  try {\n"
        << calls_.str()
        << "  } catch (const std::exception& e) {\n    std::fprintf(stderr, \"%s\\n\", "
           "e.what());\n    return 1;\n  }\n}\n";
    return all.str();
  }

 private:
  // The lines of a block with their place in the page for compiler messages; includes go to the
  // top.
  std::string text_of(const Block& block) {
    std::ostringstream text;
    text << "#line " << block.line << " \"" << page_ << "\"\n";
    for (const std::string& line : block.lines) {
      if (begins_with(line, "#include")) includes_ << line << '\n';
      text << (begins_with(line, "#include") ? "" : line) << '\n';
    }
    return text.str();
  }

  void add_program(const Block& block) {
    const std::string name = "program_" + std::to_string(++programs_);
    std::string text = text_of(block);
    // Only the global main() returns 0 by itself.
    text.insert(text.rfind('}'), "  return 0;\n");
    code_ << "namespace " << name << " {\n" << text << "}\n";
    const bool takes_words = text.find("int main(int argc, char** argv)") != std::string::npos;
    calls_ << "    if (guide::" << name << "::main(" << (takes_words ? "argc, argv" : "")
           << ") != 0) return 1;\n";
  }

  void end_section() {
    if (statements_.str().empty()) return;
    const std::string name = "section_" + std::to_string(++sections_);
    code_ << "void " << name << "() {\n" << statements_.str() << "}\n";
    calls_ << "    guide::" << name << "();\n";
    statements_.str("");
  }

  std::string page_;
  std::ostringstream includes_, code_, calls_, statements_;
  int section_ = 0, sections_ = 0, programs_ = 0;
};

void write(const std::string& path, const std::string& text) {
  std::ofstream file(path);
  file << text;
  file.flush();
  if (!file) throw std::runtime_error("cannot write " + path);
}

}  // namespace

int main(int argc, char** argv) {
  if (argc != 4) {
    std::cerr << "usage: guide_extract page.md program.cpp expected.txt\n";
    return 2;
  }
  try {
    Program program(argv[1]);
    std::string expected;
    for (const Block& block : read_blocks(argv[1])) {
      if (block.kind == "cpp") program.add(block);
      if (block.kind == "output")
        for (const std::string& line : block.lines) expected += line + '\n';
    }
    write(argv[2], program.text());
    write(argv[3], expected);
  } catch (const std::exception& e) {
    std::cerr << "guide_extract: " << e.what() << '\n';
    return 1;
  }
}

// What the command lines of the example programs share. CLI11 is included by command_line.cpp only,
// as it takes longer to compile than most programs.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <vector>

namespace CLI {
class App;
class Option;
}  // namespace CLI

namespace examples {

enum class DeviceCount { kOne, kSeveral };

// The options of a program. `names` are those of one option, separated by commas; without a dash it
// is an argument in its place. Help shows the value that a variable has when it is named here, but
// neither an empty text nor, as counts and numbers, 0, for which the program makes a choice that
// `meaning` describes. Variables are written when the line is parsed and must live until then.
class CommandLine {
 public:
  // A named option, for what else is to be said about it.
  class Option {
   public:
    explicit Option(CLI::Option* option) : option_(option) {}
    Option required() const;
    Option one_of(const std::vector<std::string>& texts) const;
    Option excludes(const Option& other) const;
    Option needs(const Option& other) const;

   private:
    CLI::Option* option_;
  };

  explicit CommandLine(const std::string& description);
  ~CommandLine();

  Option add_text(const std::string& names, std::string& value, const std::string& meaning);
  // Takes any number of texts, up to the next option.
  Option add_texts(const std::string& names, std::vector<std::string>& values,
                   const std::string& meaning);
  Option add_flag(const std::string& names, bool& value, const std::string& meaning);
  // Takes a whole number above 0.
  Option add_count(const std::string& names, int64_t& value, const std::string& meaning);
  // A whole number of at least 0.
  Option add_whole(const std::string& names, int64_t& value, const std::string& meaning);
  Option add_whole(const std::string& names, uint64_t& value, const std::string& meaning);
  // A number above 0.
  Option add_number(const std::string& names, double& value, const std::string& meaning);
  // A number of at least 0.
  Option add_amount(const std::string& names, double& value, const std::string& meaning);
  // A number of at least 0, below 1.
  Option add_share(const std::string& names, double& value, const std::string& meaning);

  // -d/--device, and -g/--gpu as in Chainer's examples: the number of a GPU, -1 for the CPU. Lists
  // where the program takes several devices; `otherwise` says what it takes by itself.
  void add_devices(std::vector<std::string>& devices, DeviceCount count,
                   const std::string& otherwise);
  // --data of programs that read images of handwritten digits, or others in their format: a folder
  // for datasets::load_mnist.
  void add_images(std::string& data);
  // --data and --vocabulary of programs that read text, see load_corpus.
  void add_corpus(std::string& data, int64_t& vocabulary);

  // --dtype and --autocast of programs that compute in float32 or bfloat16; check_precision refuses
  // the two together.
  void add_precision(std::string& dtype, bool& autocast);
  static void check_precision(const std::string& dtype, bool autocast);

  // Is called when all values are there. It may refuse() them.
  void check(std::function<void()> values);
  // The same as a value that is refused by its option.
  [[noreturn]] static void refuse(const std::string& name, const std::string& reason);
  // Whether the option of that name was on the line; once it was parsed.
  bool given(const std::string& name) const;

  // Parses; --help ends the program with status 0, wrong usage with status 2 after telling the
  // launcher. Options have the names of Chainer's examples. Those of earlier versions are accepted
  // where the program has the new one: --epochs, --batch, --units and --devices.
  void parse(int argc, char** argv);

 private:
  std::unique_ptr<CLI::App> app_;
};

}  // namespace examples

#include "options.h"

#include "common/command_line.h"

namespace word2vec {

Options parse_options(int argc, char** argv) {
  Options o;
  CLI::App app("Learns vectors of words from the words around them.");
  examples::add_text_options(app, o.data, o.vocabulary);
  examples::add_pass_options(
      app, o.run,
      {.passes = "passes over the text", .samples = "words of one update, over all ranks"});
  examples::add_count(app, "-u,--unit", o.units, "numbers of a vector");
  examples::add_count(app, "-w,--window", o.window, "largest distance of two words");
  app.add_option("-m,--model", o.model,
                 "a word from each word around it, or from the sum of their vectors")
      ->check(CLI::IsMember({"skipgram", "cbow"}))
      ->capture_default_str();
  app.add_option("-o,--out-type", o.out_type,
                 "hierarchical softmax, negative sampling, or a score for each word")
      ->check(CLI::IsMember({"hsm", "ns", "original"}))
      ->capture_default_str();
  examples::add_count(app, "--negative", o.negative,
                      "words drawn against each word, with --out-type ns");
  examples::add_device_options(app, o.run);
  examples::add_output_options(app, o.run, "--out");  // -o is another one in Chainer's example
  examples::parse(app, argc, argv);
  return o;
}

}  // namespace word2vec

#include "options.h"

#include "common/command_line.h"

namespace word2vec {

Options parse_options(int argc, char** argv) {
  Options o;
  examples::CommandLine line("Learns vectors of words from the words around them.");
  line.add_corpus(o.data, o.vocabulary);
  examples::add_pass_options(
      line, o.run,
      {.passes = "passes over the text", .samples = "words of one update, over all ranks"});
  line.add_count("-u,--unit", o.units, "numbers of a vector");
  line.add_count("-w,--window", o.window, "largest distance of two words");
  line.add_text("-m,--model", o.model,
                "a word from each word around it, or from the sum of their vectors")
      .one_of({"skipgram", "cbow"});
  line.add_text("-o,--out-type", o.out_type,
                "hierarchical softmax, negative sampling, or a score for each word")
      .one_of({"hsm", "ns", "original"});
  line.add_count("--negative", o.negative, "words drawn against each word, with --out-type ns");
  examples::add_device_options(line, o.run);
  examples::add_output_options(line, o.run, "--out");  // -o is another one in Chainer's example
  line.parse(argc, argv);
  return o;
}

}  // namespace word2vec

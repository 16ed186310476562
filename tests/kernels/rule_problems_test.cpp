// Rules that match nothing, and rules that force plug-ins that do not load.
#include "kernels/rule_problems.h"

#include <gtest/gtest.h>

#include <cstdio>
#include <filesystem>
#include <string>

#include "catena/core/backend.h"
#include "catena/core/plugin.h"
#include "temp_folder.h"

namespace catena {
namespace {

const std::string kProgram(FIRST_CALL_PROGRAM);

// The first problem of the rules; "" without one.
std::string problem_of(const char* rules) {
  std::vector<std::string_view> kernels;
  for (const SlotBase* slot : all_slots()) kernels.push_back(slot->name());
  const ProviderScope scope(rules);
  const auto problems = rule_problems(kernels);
  return problems.empty() ? "" : problems.front().text;
}

// What a process writes where the plug-ins of oneDNN and cuDNN are damaged and the one of GPUs does
// nothing; and whether it works.
struct Outcome {
  std::string text;
  bool works;
};
Outcome run_with(const std::string& variables, const std::string& first) {
  const TempFolder folder;
  for (const char* plugin : {"onednn", "cudnn"})
    write_file(folder / (std::string("libcatena_") + plugin + ".so"), "no library");
  std::filesystem::copy(TEST_PLUGINS "/libcatena_usable.so", folder / "libcatena_cuda.so");
  const std::string command = "env " + variables + " CATENA_PLUGIN_PATH=" + folder.path() + " " +
                              kProgram + " " + first + " 2>&1";
  FILE* pipe = popen(command.c_str(), "r");
  std::string text;
  char buffer[1024];
  while (size_t n = fread(buffer, 1, sizeof buffer, pipe)) text.append(buffer, n);
  return {text, pclose(pipe) == 0};
}
Outcome convolution_with(const std::string& variables) {
  return run_with(variables, "convolution");
}

size_t count(const std::string& text, const std::string& part) {
  size_t found = 0;
  for (size_t at = text.find(part); at != std::string::npos; at = text.find(part, at + 1)) ++found;
  return found;
}

TEST(RuleProblems, RulesForProvidersThatMayComeMatch) {
  for (const char* rules :
       {"", "cpu:on", "products:only", "convolution/products:off", "convolution/cudnn:off",
        "cublaslt:off", "matmul/cublaslt:only", "cudnn:always"})
    EXPECT_EQ(problem_of(rules).find("matches nothing"), std::string::npos) << rules;
}

TEST(RuleProblems, NameTheProvidersThatThereAre) {
  const std::string text = problem_of("onedn:off");
  EXPECT_EQ(text.find("the rule 'onedn:off' matches nothing: there is no provider 'onedn'; "), 0u)
      << text;
  for (const char* name : {"cpu", "cublaslt", "cudnn", "onednn", "products"})
    EXPECT_NE(text.find(name, text.find("there are")), std::string::npos) << text;
}

TEST(RuleProblems, NameTheKernelThatIsNotThereOrHasNoSuchProvider) {
  EXPECT_EQ(problem_of("convolutoin/onednn:off"),
            "the rule 'convolutoin/onednn:off' matches nothing: there is no kernel 'convolutoin'");
  EXPECT_EQ(problem_of("elementwise/onednn:only"),
            "the rule 'elementwise/onednn:only' matches nothing: 'elementwise' has no provider "
            "'onednn'");
}

TEST(RuleProblems, KnowTheKernelsOfCompanions) {
  for (const SlotBase* slot : all_slots()) {
    if (!plugin_error("onednn").empty()) GTEST_SKIP() << "SKIPPED: " << plugin_error("onednn");
    bool has = false;
    for (const ProviderInfo& p : slot->providers(DeviceType::kCpu)) has |= p.name == "onednn";
    EXPECT_EQ(has, companion_has("onednn", slot->name())) << slot->name();
  }
}

TEST(RuleProblems, ForcedPluginThatDoesNotLoadIsAnError) {
  for (const char* rules : {"onednn:only", "convolution/onednn:only"}) {
    const auto [text, works] = convolution_with(std::string("CATENA_PROVIDERS=") + rules);
    EXPECT_FALSE(works);
    EXPECT_NE(text.find("no provider takes this call on cpu:0; asked: none; left out by the rules "
                        "'" +
                        std::string(rules) +
                        "' (config().providers, CATENA_PROVIDERS): direct, products; "
                        "plug-in 'onednn' does not load: "),
              std::string::npos)
        << text;
    EXPECT_EQ(count(text, "names a provider that is not there: plug-in 'onednn'"), 1u) << text;
  }
}

TEST(RuleProblems, OtherRulesForItAreNone) {
  for (const char* rules :
       {"onednn:on", "onednn:only,onednn:off", "convolution_grad_x/onednn:only", "cudnn:only"})
    EXPECT_TRUE(convolution_with(std::string("CATENA_PROVIDERS=") + rules).works) << rules;
}

TEST(RuleProblems, TheVariableForCudnnIsARuleBeforeTheOthers) {
  EXPECT_EQ(run_with("-u CATENA_PROVIDERS CATENA_CUDNN=never", "layer").text, "cudnn:off\n");
  EXPECT_EQ(run_with("-u CATENA_PROVIDERS CATENA_CUDNN=auto", "layer").text, "\n");
  const auto both = run_with("CATENA_PROVIDERS=matmul/cublaslt:off CATENA_CUDNN=always", "layer");
  EXPECT_EQ(both.text, "cudnn:always,matmul/cublaslt:off\n");
}

// They are loaded when the CPU's rules have long been judged.
TEST(RuleProblems, CompanionsOfGpusAreWarnedOfWhenTheyFail) {
  const auto [text, works] = run_with("CATENA_PROVIDERS=cudnn:only", "cuda");
  EXPECT_TRUE(works) << text;
  EXPECT_EQ(count(text, "names a provider that is not there: plug-in 'cudnn' does not load: "), 1u)
      << text;
  EXPECT_EQ(count(run_with("CATENA_PROVIDERS=cudnn:only", "layer").text, "warning"), 0u);
}

TEST(RuleProblems, AreWarnedOfOnce) {
  const auto [text, works] = convolution_with("CATENA_PROVIDERS=onedn:off");
  EXPECT_TRUE(works);
  EXPECT_EQ(count(text, "catena warning: "), 1u) << text;
  EXPECT_EQ(count(text, "the rule 'onedn:off' matches nothing"), 1u) << text;
  EXPECT_EQ(convolution_with("-u CATENA_PROVIDERS").text, "");
}

TEST(RuleProblems, WrongFormIsNamedWithoutMoreWords) {
  const std::string text = convolution_with("CATENA_PROVIDERS=onednn=off").text;
  EXPECT_EQ(text.find("catena warning: CATENA_PROVIDERS is ignored: 'onednn=off' is not a rule"),
            0u)
      << text;
}

TEST(RuleProblems, DebugSaysWhyACompanionIsLeftOut) {
  const std::string text = convolution_with("-u CATENA_PROVIDERS CATENA_LOG=debug").text;
  EXPECT_EQ(count(text, "kernels of onednn are left out: plug-in 'onednn' does not load: "), 1u)
      << text;
}

}  // namespace
}  // namespace catena

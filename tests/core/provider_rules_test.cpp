#include "catena/core/provider_rules.h"

#include <gtest/gtest.h>

#include "catena/core/error.h"
#include "core/rule_text.h"

namespace catena {
namespace {

TEST(ProviderRules, LastRuleThatFitsWins) {
  ProviderRules rules;
  EXPECT_EQ(rules.use("matmul", "cublaslt"), ProviderUse::kOn);
  rules = "cublaslt:off,matmul/cublaslt:only,copy/nvrtc:off";
  EXPECT_EQ(rules.use("matmul", "cublaslt"), ProviderUse::kOnly);
  EXPECT_EQ(rules.use("convolution", "cublaslt"), ProviderUse::kOff);
  EXPECT_EQ(rules.use("copy", "nvrtc"), ProviderUse::kOff);
  EXPECT_EQ(rules.use("fill", "nvrtc"), ProviderUse::kOn);
  rules = " cudnn:off,\tonednn:only ";  // blanks count for nothing
  EXPECT_EQ(rules.use("matmul", "cudnn"), ProviderUse::kOff);
  EXPECT_EQ(rules.use("matmul", "onednn"), ProviderUse::kOnly);
  rules = "cudnn:off,cudnn:always";
  EXPECT_EQ(rules.use("convolution", "cudnn"), ProviderUse::kAlways);
  rules = "";
  EXPECT_EQ(rules.use("copy", "nvrtc"), ProviderUse::kOn);
}

TEST(ProviderRules, WrongTextChangesNothing) {
  ProviderRules rules;
  rules = "cudnn:off";
  for (const char* text :
       {"cudnn", "cudnn:", "cudnn:maybe", ":off", "matmul/:off", "/cudnn:off", "cudnn:off,,"})
    EXPECT_THROW(rules = text, ValueError) << text;
  EXPECT_EQ(rules.text(), "cudnn:off");
  EXPECT_EQ(rules.use("matmul", "cudnn"), ProviderUse::kOff);
}

TEST(ProviderRules, KeepTheWordsOfEachRule) {
  const RuleText parsed = parse_rules("cudnn:off, matmul/cublaslt:only");
  EXPECT_EQ(parsed.problem, "");
  ASSERT_EQ(parsed.rules.size(), 2u);
  EXPECT_EQ(parsed.rules[0].text, "cudnn:off");
  EXPECT_EQ(parsed.rules[0].kernel, "");
  EXPECT_EQ(parsed.rules[1].text, "matmul/cublaslt:only");
  EXPECT_EQ(parsed.rules[1].kernel, "matmul");
  EXPECT_EQ(parsed.rules[1].provider, "cublaslt");
  EXPECT_EQ(parsed.rules[1].use, ProviderUse::kOnly);
}

TEST(ProviderRules, ErrorNamesTheWrongRule) {
  ProviderRules rules;
  try {
    rules = "cudnn:off,onednn=off";
    FAIL();
  } catch (const ValueError& e) {
    EXPECT_STREQ(e.what(),
                 "providers: 'onednn=off' is not a rule; expected [KERNEL/]PROVIDER:on, :off, "
                 ":only or :always, separated by commas, such as 'cudnn:off,matmul/cublaslt:only'");
  }
}

}  // namespace
}  // namespace catena

#include "catena/core/provider_rules.h"

#include <gtest/gtest.h>

#include "catena/core/error.h"

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

}  // namespace
}  // namespace catena

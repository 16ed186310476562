#include "cli/check.h"

#include <gtest/gtest.h>

#include <cstdint>
#include <cstdio>
#include <filesystem>
#include <utility>

#include "environment_scope.h"
#include "temp_folder.h"

namespace catena::launch {
namespace {

using State = CheckItem::State;

// Of a machine with this many GPUs.
CheckContext context_of(const std::vector<std::string>& folders, int gpus) {
  CheckContext context;
  context.library_folders = folders;
  context.gpus.gpus.resize(static_cast<std::size_t>(gpus));
  return context;
}

CheckItems check_plugins(const std::vector<std::string>& folders, bool has_gpus) {
  return run_probes(context_of(folders, has_gpus), {"libcatena", "plug-ins", "kernels"});
}

CheckItems check_libraries(bool has_gpus) {
  return run_probes(context_of({}, has_gpus), {"vendor libraries"});
}

std::string kernel_cache_text() {
  return run_probes(context_of({}, 0), {"kernel cache"}).front().text;
}

TEST(Check, OneCommandInstallsEverythingMissing) {
  const std::string text = format_check({{State::good, "a", "fine", ""},
                                         {State::absent, "bb", "not needed", ""},
                                         {State::missing, "c", "not found", "pkg2 pkg1"},
                                         {State::missing, "d", "not found", "pkg1"}});
  EXPECT_EQ(text.find("ok       a   fine\n-        bb  not needed\nMISSING  c   not found\n"), 0u);
  EXPECT_NE(text.find("apt-get install pkg1 pkg2\n"), std::string::npos);
}

TEST(Check, NothingToInstall) {
  EXPECT_EQ(format_check({{State::good, "a", "fine", ""}}), "ok       a  fine\n");
}

TEST(Check, MissingMpirunNamesItsPackage) {
  CheckContext context;
  context.job.mpirun = "/nowhere/mpirun";
  const auto items = run_probes(context, {"starter"});
  EXPECT_EQ(items.front().state, State::missing);
  EXPECT_EQ(items.front().packages, "openmpi-bin");
}

TEST(Check, PluginThatDoesNotLoadSaysWhy) {
  const TempFolder folder;
  write_file(folder / "libcatena_cuda.so", "no library");
  for (const CheckItem& item : check_plugins({folder.path()}, true)) {
    if (item.name != "libcatena_cuda") {
      EXPECT_EQ(item.state, State::absent) << item.name;
      continue;
    }
    EXPECT_EQ(item.state, State::missing);
    EXPECT_EQ(item.text.find("does not load: "), 0u) << item.text;
  }
}

#ifdef CATENA_FOLDER
const CheckItem& item_of(const std::vector<CheckItem>& items, const std::string& name) {
  static const CheckItem none;
  for (const CheckItem& item : items)
    if (item.name == name) return item;
  return none;
}

TEST(Check, LibcatenaLoadsItsPlugins) {
  const auto items = check_plugins({CATENA_FOLDER}, false);
  EXPECT_EQ(item_of(items, "libcatena").state, State::good) << item_of(items, "libcatena").text;
  EXPECT_TRUE(item_of(items, "libcatena").text.ends_with(", " CATENA_FOLDER "/libcatena.so"))
      << item_of(items, "libcatena").text;
#ifdef CATENA_HAS_MPI
  EXPECT_EQ(item_of(items, "libcatena_mpi").state, State::good)
      << item_of(items, "libcatena_mpi").text;
#endif
  // Without a GPU the cuda plug-in says so, which is no complaint here.
  EXPECT_NE(item_of(items, "libcatena_cuda").state, State::missing);
}

// What catena-run --check prints about `name`, in a process of its own: libcatena reads its
// settings and loads a plug-in once.
std::string line_of(const std::string& variables, const std::string& name) {
  FILE* pipe = popen(("env " + variables + " " CATENA_RUN " --check 2>/dev/null").c_str(), "r");
  std::string text;
  char buffer[1024];
  while (const std::size_t n = fread(buffer, 1, sizeof buffer, pipe)) text.append(buffer, n);
  pclose(pipe);
  const std::size_t at = text.find(name);
  if (at == std::string::npos) return "no line '" + name + "':\n" + text;
  const std::size_t line = text.rfind('\n', at) + 1;
  return text.substr(line, text.find('\n', at) - line);
}

bool contains(const std::string& text, const std::string& part) {
  return text.find(part) != std::string::npos;
}

TEST(Check, WrongRulesOfProvidersAreNoGoodLine) {
  const std::string form = line_of("CATENA_PROVIDERS=onednn=off", " providers ");
  EXPECT_TRUE(form.starts_with("MISSING")) << form;
  EXPECT_TRUE(contains(form, "CATENA_PROVIDERS is ignored: 'onednn=off' is not a rule")) << form;
  EXPECT_TRUE(contains(form, "; cpu: ") && contains(form, ", convolution (")) << form;
  const std::string typo = line_of("CATENA_PROVIDERS=onedn:off", " providers ");
  EXPECT_TRUE(typo.starts_with("MISSING")) << typo;
  EXPECT_TRUE(contains(typo, "'onedn:off' matches nothing")) << typo;
  EXPECT_TRUE(line_of("CATENA_PROVIDERS=cublaslt:off", " providers ").starts_with("ok"));
}

// With a folder whose onednn plug-in needs a library that is not there.
TEST(Check, CompanionWithoutItsLibraryNamesThePackage) {
  const std::string file = "/libcatena_onednn.so";
  if (!std::filesystem::exists(CATENA_FOLDER + file))
    GTEST_SKIP() << "SKIPPED: no onednn plug-in in this build";
  std::string bytes = read_file(CATENA_FOLDER + file);
  const std::string needed = "libdnnl.so.";
  for (std::size_t at = 0; (at = bytes.find(needed, at)) != std::string::npos;)
    bytes[at += needed.size()] = '9';
  const TempFolder folder;
  write_file(folder / "libcatena_onednn.so", bytes);
  const std::string variables = "CATENA_PLUGIN_PATH=" + folder.path();
  const std::string plugin = line_of(variables, " libcatena_onednn ");
  EXPECT_TRUE(plugin.starts_with("MISSING")) << plugin;
  EXPECT_TRUE(contains(plugin, "libdnnl.so.9: cannot open shared object file")) << plugin;
  EXPECT_FALSE(contains(plugin, "names the packages")) << plugin;
  EXPECT_TRUE(contains(line_of(variables, "apt-get install"), "libdnnl-dev"));
  const std::string providers = line_of(variables, " providers ");
  EXPECT_TRUE(providers.starts_with("ok")) << providers;
  EXPECT_TRUE(contains(providers, "convolution (onednn not loaded, direct, products)"))
      << providers;
  const std::string forced = line_of(variables + " CATENA_PROVIDERS=onednn:only", " providers ");
  EXPECT_TRUE(forced.starts_with("MISSING")) << forced;
  EXPECT_TRUE(contains(forced, "onednn only, but not loaded")) << forced;
}

TEST(Check, CompanionsNameTheLibraryThatTheyUse) {
  for (const auto& [plugin, library] : {std::pair("libcatena_onednn", ", with oneDNN "),
                                        std::pair("libcatena_cudnn", ", with cuDNN 9.")}) {
    const std::string line = line_of("-u CATENA_PROVIDERS", std::string(" ") + plugin + " ");
    if (!line.starts_with("ok")) continue;  // not built, or its library is not here
    EXPECT_TRUE(contains(line, library)) << line;
    EXPECT_TRUE(contains(line, " of /")) << line;
  }
}

// Packages put libcatena.so into the development package, which programs do without.
TEST(Check, LibcatenaWithoutItsDevelopmentLink) {
  const TempFolder folder;
  const std::string link = folder / CATENA_SONAME;
  std::filesystem::create_symlink(CATENA_FOLDER "/libcatena.so", link);
  const CheckItem item = item_of(check_plugins({folder.path()}, false), "libcatena");
  EXPECT_EQ(item.state, State::good) << item.text;
  EXPECT_TRUE(item.text.ends_with(", " + link)) << item.text;
}

// The loader would take it, libcatena does not.
TEST(Check, PluginOfAnotherBuildSaysSo) {
  const TempFolder folder;
  std::filesystem::copy(TEST_PLUGINS "/libcatena_other_build.so", folder / "libcatena_onednn.so");
  const EnvironmentScope plugins("CATENA_PLUGIN_PATH", folder.path());
  const auto items = check_plugins({folder.path(), CATENA_FOLDER}, false);
  const CheckItem& item = item_of(items, "libcatena_onednn");
  EXPECT_EQ(item.state, State::missing);
  EXPECT_NE(item.text.find("of another build"), std::string::npos) << item.text;
  EXPECT_NE(item.text.find("rebuild the plug-in"), std::string::npos) << item.text;
}

// With the libcatena here, which asks the loader, and without one, when --check does.
TEST(Check, PluginThatIsCutOffIsNamed) {
  const TempFolder folder;
  const std::string file = folder / "libcatena_onednn.so";
  std::filesystem::copy(TEST_PLUGINS "/libcatena_unusable.so", file);
  std::filesystem::resize_file(file, std::filesystem::file_size(file) / 2);
  const EnvironmentScope plugins("CATENA_PLUGIN_PATH", folder.path());
  for (const std::vector<std::string>& folders :
       {std::vector<std::string>{folder.path(), CATENA_FOLDER}, {folder.path()}}) {
    const CheckItem item = item_of(check_plugins(folders, false), "libcatena_onednn");
    EXPECT_EQ(item.state, State::missing);
    EXPECT_NE(item.text.find(file + " is cut off"), std::string::npos) << item.text;
  }
}
#endif

TEST(Check, KernelCacheTellsItsUses) {
  const TempFolder folder;
  std::filesystem::create_directories(folder / "kernels");
  EnvironmentScope environment("CATENA_CACHE_DIR", folder.path());
  environment.set("CUPY_CACHE_DIR", {});
  EXPECT_EQ(kernel_cache_text(), "empty; 0 hits, 0 misses so far, " + folder.path());
  write_file(folder / "kernels/0.cubin", std::string(3000, 'x'));
  write_file(folder / "kernels/0.lock", "");
  const std::uint64_t uses[] = {57, 12};
  write_file(folder / "kernels/counts", {reinterpret_cast<const char*>(uses), sizeof(uses)});
  const std::string kernels = "1 kernels, 2 KiB; 57 hits, 12 misses so far";
  EXPECT_EQ(kernel_cache_text(), kernels + ", " + folder.path());
  std::filesystem::create_directories(folder / "plans");
  for (const char* plan : {"plans/0.plan", "plans/1.plan"})
    write_file(folder / plan, std::string(1024, 'x'));
  EXPECT_EQ(kernel_cache_text(),
            kernels + "; 2 plans of cuDNN, 2 KiB; 0 hits, 0 misses so far, " + folder.path());
  std::filesystem::remove_all(folder / "plans");
  environment.set("CATENA_CACHE_DIR", {});
  environment.set("CUPY_CACHE_DIR", folder.path());
  EXPECT_EQ(kernel_cache_text(), kernels + ", " + folder.path());
  environment.set("CUPY_CACHE_DIR", {});
  environment.set("CATENA_CACHE_DIR", "");
  EXPECT_TRUE(kernel_cache_text().starts_with("none; CATENA_CACHE_DIR is empty"));
}

TEST(Check, AFolderThatCannotBeTheKernelCacheIsNamed) {
  const TempFolder folder;
  write_file(folder / "file", "");
  std::filesystem::create_symlink("nothing", folder / "dangling");
  std::filesystem::create_symlink("loop", folder / "loop");
  const std::pair<std::string, const char*> cases[] = {
      {folder / "file", "it is not a folder"},
      {folder / "dangling", "it is a link to nothing"},
      {folder / "loop", "it is a link to nothing"},
      {"/dev/null", "it is not a folder"},
      {"/proc", "it cannot be written"},
      {std::string(5000, 'x'), "File name too long"}};
  for (const auto& [name, reason] : cases) {
    const EnvironmentScope cache("CATENA_CACHE_DIR", name);
    EXPECT_NE(kernel_cache_text().find(reason), std::string::npos) << kernel_cache_text();
  }
  const EnvironmentScope cache("CATENA_CACHE_DIR", folder / "new");
  EXPECT_TRUE(kernel_cache_text().starts_with("empty; ")) << kernel_cache_text();
}

TEST(Check, MissingCompanionsAreNamedWithWhatServesInstead) {
  const auto items = check_plugins({"/nowhere"}, true);
  for (const char* name : {"libcatena_cudnn", "libcatena_onednn"}) {
    const CheckItem& item = item_of(items, name);
    EXPECT_EQ(item.state, State::absent);
    EXPECT_EQ(item.text, "not built or not installed; catena's own kernels serve");
  }
}

TEST(Check, LibrariesForGpusAreOnlyMissedBesideGpus) {
  for (const CheckItem& item : check_libraries(false))
    EXPECT_NE(item.state, State::missing) << item.name;
}

}  // namespace
}  // namespace catena::launch

#include "spec/job_spec.h"

#include <cstdio>
#include <random>

#include "base/text.h"

extern char** environ;

namespace catena::launch {

void put(const EnvSetting& setting) {
  if (setting.value)
    setenv(setting.name.c_str(), setting.value->c_str(), 1);
  else
    unsetenv(setting.name.c_str());
}

std::string to_text(const Devices& devices) {
  if (devices.kind == Devices::Kind::automatic) return "auto";
  if (devices.kind == Devices::Kind::cpu) return "cpu";
  std::vector<std::string> numbers;
  for (const int gpu : devices.gpus) numbers.push_back(std::to_string(gpu));
  return "cuda:" + join(numbers, ",");
}

Devices parse_devices(const std::string& text) {
  if (text == "cpu") return {Devices::Kind::cpu, {}};
  if (!text.starts_with("cuda:")) return {};
  Devices devices{Devices::Kind::listed, {}};
  for (const std::string& number : split(text.substr(5), ','))
    devices.gpus.push_back(parse_number(number).value_or(0));
  return devices;
}

std::string new_job_id() {
  char text[9];
  std::snprintf(text, sizeof(text), "%08x", std::random_device{}());
  return text;
}

std::vector<std::string> environment_of(const JobSpec& spec) {
  std::vector<std::string> entries;
  for (char** entry = environ; *entry; ++entry) entries.emplace_back(*entry);
  for (const EnvSetting& setting : spec.env)
    if (setting.value) entries.push_back(setting.name + "=" + *setting.value);
  return entries;
}

}  // namespace catena::launch

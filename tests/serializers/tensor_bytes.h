// Files of tensors put together byte by byte, without the library's writers: safetensors, zip
// archives and pickles as torch.save makes them, and one file that PyTorch wrote.
#pragma once

#include <cstdint>
#include <cstring>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace tensor_bytes {

// The bytes of numbers, little-endian.
template <class T>
std::string bytes_of(const std::vector<T>& values) {
  std::string bytes(values.size() * sizeof(T), '\0');
  if (!values.empty()) std::memcpy(bytes.data(), values.data(), bytes.size());
  return bytes;
}
template <class T>
std::string number(T value) {
  return bytes_of(std::vector<T>{value});
}

inline std::string safetensors(const std::string& json, const std::string& data) {
  return number<uint64_t>(json.size()) + json + data;
}

inline uint32_t checksum(std::string_view bytes) {
  uint32_t crc = ~0u;
  for (const char c : bytes) {
    crc ^= static_cast<unsigned char>(c);
    for (int bit = 0; bit < 8; ++bit) crc = crc >> 1 ^ (crc & 1 ? 0xEDB88320u : 0u);
  }
  return ~crc;
}

using Members = std::vector<std::pair<std::string, std::string>>;

// A zip archive of stored members.
inline std::string zip(const Members& members) {
  std::string file, directory;
  for (const auto& [name, content] : members) {
    const std::string common = number<uint16_t>(20) + std::string(2, '\0') + std::string(6, '\0') +
                               number(checksum(content)) +
                               number(static_cast<uint32_t>(content.size())) +
                               number(static_cast<uint32_t>(content.size())) +
                               number(static_cast<uint16_t>(name.size())) + std::string(2, '\0');
    directory += "PK\1\2" + number<uint16_t>(20) + common + std::string(10, '\0') +
                 number(static_cast<uint32_t>(file.size())) + name;
    file += "PK\3\4" + common + name + content;
  }
  const auto count = static_cast<uint16_t>(members.size());
  return file + directory + "PK\5\6" + std::string(4, '\0') + number(count) + number(count) +
         number(static_cast<uint32_t>(directory.size())) +
         number(static_cast<uint32_t>(file.size())) + std::string(2, '\0');
}

// Pieces of pickles of protocol 2.
namespace pickle {

inline std::string text(const std::string& value) {
  return "X" + number(static_cast<uint32_t>(value.size())) + value;
}
inline std::string integer(int32_t value) { return "J" + number(value); }
// "torch FloatStorage"
inline std::string global(const std::string& module, const std::string& name) {
  return "c" + module + "\n" + name + "\n";
}
inline std::string tuple(const std::vector<std::string>& items) {
  std::string all = "(";
  for (const std::string& item : items) all += item;
  return all + "t";
}
inline std::string integers(const std::vector<int32_t>& values) {
  std::vector<std::string> items;
  for (const int32_t value : values) items.push_back(integer(value));
  return tuple(items);
}
inline std::string storage(const std::string& type, const std::string& key, int32_t elements) {
  return tuple(
             {text("storage"), global("torch", type), text(key), text("cpu"), integer(elements)}) +
         "Q";
}
inline std::string tensor(const std::string& storage, int32_t offset,
                          const std::vector<int32_t>& shape, const std::vector<int32_t>& strides) {
  return global("torch._utils", "_rebuild_tensor_v2") +
         tuple({storage, integer(offset), integers(shape), integers(strides), "\x89",
                global("collections", "OrderedDict") + ")R"}) +
         "R";
}
// A dict of keys and values.
inline std::string dict(const std::vector<std::pair<std::string, std::string>>& items) {
  std::string all = "}(";
  for (const auto& [key, value] : items) all += text(key) + value;
  return all + "u";
}
inline std::string whole(const std::string& value) { return "\x80\x02" + value + "."; }

}  // namespace pickle

// An archive of torch.save: the outermost value, and storages by their keys.
inline std::string torch_file(const std::string& value, const Members& storages,
                              const Members& more = {}) {
  Members members{{"net/data.pkl", pickle::whole(value)}};
  for (const auto& [key, bytes] : storages) members.emplace_back("net/data/" + key, bytes);
  members.emplace_back("net/version", "3\n");
  members.insert(members.end(), more.begin(), more.end());
  return zip(members);
}

// One tensor "x" of float32 elements 1 to 6.
inline std::string small_torch_file() {
  using namespace pickle;
  return torch_file(dict({{"x", tensor(storage("FloatStorage", "0", 6), 0, {2, 3}, {3, 1})}}),
                    {{"0", bytes_of<float>({1, 2, 3, 4, 5, 6})}});
}

// What PyTorch 2.15 wrote, as zlib-compressed base64 of 4988 bytes:
//   base = torch.arange(12, dtype=torch.float32)
//   linear = torch.nn.Linear(3, 2)  # with weight [[1, 2, 3], [4, 5, 6]] and bias [7, 8]
//   torch.save({"model": linear.state_dict(), "epoch": 7, "lr": [0.1, 0.2],
//               "view": torch.arange(6).reshape(2, 3).t(),
//               "part": base[2:6].reshape(2, 2), "whole": base.reshape(3, 4),
//               "wide": torch.tensor([[1.5], [-2.0]], dtype=torch.float64).expand(2, 3),
//               "half": torch.tensor([1.0, -0.5], dtype=torch.bfloat16),
//               "flag": torch.tensor([True, False]), "step": torch.tensor(3, dtype=torch.int32),
//               "ids": torch.tensor([1, 65535], dtype=torch.uint16), "z": torch.tensor([1 + 2j]),
//               "list": [torch.ones(1, dtype=torch.int8)],
//               "w": torch.nn.Parameter(torch.tensor([0.25])), "none": torch.zeros(0, 4)}, file)
inline constexpr size_t kSampleBytes = 4988;
inline constexpr char kSample[] =
    "eNqlV9tzE1UY3yRt2obaC0UooIiCkiKE3NNwaUrAICxCWURjFeM22TYr22y+5KQFtFrFFhBfZJxx8MFBRhzHf0B9"
    "UcYHGWd8UF9l1BnHBx8cB8cHH5zBc9lu95xeIu1ON6dJ9nf5zuX7vgzIngZJam6W5lwd0kpJreSL+pi2o6AiNVA+"
    "ZWTSbdIgd026J0DyZxsxYNQsaAa48nnTMLQ80s1S1Xe0UtAqWmG/nkc+cPco4PFnvfjZcU0fKSJoyCMTSwRyNaQb"
    "VV+uog3VdKOQQ1qpalZyY2EfNPr92SaMqOIn1RENvAziyximio6zD33QlHXhZ4LQnPXgMV+uQYvsReA7JkuyW/ZM"
    "wwrZI7umofVikbi4B0GbAu1ZHLo0pKtV6ChinaK3yHhC0Flskd0IVlL8FHTJrilYxbD3IlitwJraBHRnW/DDuVEN"
    "qWSCYC39fl2WzB6sn4D7qPExrVLFcwH3y65qtTpEp0orm/kibJCbsm78zqjAAydho/9A6vMr5HrvQOob9o9GHY7p"
    "2jg8yBxa0R82SyN28A9R02HYVKRBbyamPbJ7Gh6WXST2R5jxLQj8CvRQyrJaQbCVCzoCj2J8K4Jtx/CUuQl+Ox7w"
    "pAUYfgeCoAIhGsB40TQ0CM8QFC1ohEk3TENUbiDQGIPGESQU6KXS43pBgyQXzX6zNmRodjw7qZ8o7GKLsNtexD04"
    "Hmka+hhpCkG/AnspaVE1hiHNkabpDgnFbdp9lDYG+xntY9baZsjaHmCUjyM4qMAhSjlsqCMg85Smadh0hyldHJ5g"
    "dEcsuqOEboDRHUOgKHCc0lWRVoYnObqDpdkNfIKyJeApzOZC8DRm6+lhLFkEzygwSHe2XqjCs3UOTcQHz82qBKyD"
    "4ztRQmfKWsFWPEkVe+F5rNiAIGf5f4H4V5nykGW0ppfwRPogj6CggEaBZ2GYC2afOVo2tNP8sRyhjyahyKLSiQam"
    "f5G8nGIaBoJRBUp0jgy9isA8CWWeuahWbEagJyYUhAqjrFqUiLzUGOUYgnEFTqtUfBzOLDBf+Ayo+OxqFR+ctU8C"
    "ZQ/BS4z9ZYt9gry8wthfRTCpwGsX6JvXz8M5Bd6g7ktmSYMpnikM05hJQnCeMEnkZFxgJ+MiY3sTwSUF3qoFBuSm"
    "5mudN787iI8XuQcWTMxrpLCdmAPDZmVURTkryWTSASE/17tCRPfTP2+dI3NF7oV110mJWV1rV+VUQx8pjWollElH"
    "7lKaXvEoMZAah9/JfLkXNdAppWwDQ2eQZpLikknvWoruzGXoCBka8TC159e1pDR5F/XQJvVxVXFHMJPeuQwDkjSZ"
    "wrT9+A/fk/i+iu8b/cTR5t+Sa7vxl911HG3jHYUyab/0//V/wXrSXqL34R9HthKB5jp6u3m9cCbdKy09fna5rNFt"
    "jR5rbLDGRmskPltvfv1BkJT7Oj5X8T4jmXSHNL/+/GswMze4F8L3RnwH6TydnhjuW4J+dGH9f1IW6Abhv3To26kO"
    "2oEtzh/l+WOZdPCu1wFH/iXRfFf7+7MGa74X0+znNeOZ9O7lHL9BF13RLzZ9la1//tukNK+eyKT7lqU+OOix9tRf"
    "5duRJcTfu/z479wh+tOf/LRlCfrJ5erP7H3iYex6KlD//LdLu4R8g1NgYqkmXER4/c+N1+vXn3Zx+UOh5a8/jr+P"
    "WPh38KMf+fmX5rWQEiyEl1l/Fgu3y9ayy3u7qBXxEfffvz9yov752eBsHKj9qlbRcQU/q5Jfazm9cPf9QzCeDEai"
    "yWAymeiNhKLRSCIWDCYTsUg0GEtE48lYMBqKxSK0zfDe3nPLj334qUsXTfUzPp2tT8cc5+LvUBHtbGDWcMgrjdJC"
    "zZJI4mxC1vGNh1dapPMReZyNRCfHc9nBYzcwItxZ9ds4+OomSeg9RKyzgvPYj0VsSMQ6qyqP7W4WsGER66yIPPaG"
    "iI2IWGe147H9LQI2KmKdVYvHXhWxMRHrrDk8dpVPwMZFrLNa8NjLIjYhYp2ZXtBdIWB7RawzQ/PYd0RsUsQ6k2w7"
    "v76t4t6Ys7Gc6ZEHvz0HbO+s+TMoF/E9InjO1nKmNh486QAvcKSdGWcDB/7BAZ4/Fw7IXu+2mczp2W4ju4TxmtWi"
    "nm6b6VC9TfTnUtdsZzsgN3oZpos+z579D41cZKQ=";

inline std::string from_base64(std::string_view text) {
  constexpr std::string_view kDigits =
      "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
  std::string bytes;
  uint32_t bits = 0;
  int count = 0;
  for (const char c : text) {
    if (c == '=') break;
    bits = bits << 6 | static_cast<uint32_t>(kDigits.find(c));
    count += 6;
    if (count >= 8) bytes += static_cast<char>(bits >> (count -= 8));
  }
  return bytes;
}

}  // namespace tensor_bytes

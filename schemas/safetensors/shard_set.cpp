#include "schemas/safetensors/shard_set.hpp"

#include <algorithm>
#include <map>
#include <utility>

#include <unistd.h>

#include <fmt/core.h>
#include <nlohmann/json.hpp>

#include "schemas/base/checksum.hpp"
#include "schemas/file/printable.hpp"
#include "schemas/file/strict_json.hpp"

namespace moetier {
namespace {

constexpr std::string_view k_single = "model.safetensors";
constexpr std::string_view k_index = "model.safetensors.index.json";

using weight_map = std::map<std::string, std::string, std::less<>>;  // tensor -> shard

bool is_plain(std::string_view name) {
  return !name.empty() && name.size() <= 255 && name.front() != '.' &&
         std::all_of(name.begin(), name.end(),
                     [](char c) { return c > 0x20 && c < 0x7f && c != '/' && c != '\\'; });
}

expected<weight_map> read_index(const std::string& path) {
  auto text = input_file::read_text(path, k_index_bytes_max);
  if (!text) return unexpected_error(std::move(text.error()));
  auto document = parse_json(*text, path, {.depth_max = 4, .values_max = k_index_values_max});
  if (!document) return unexpected_error(std::move(document.error()));
  if (!document->is_object() || !document->contains("weight_map") ||
      !(*document)["weight_map"].is_object())
    return fail(reason::file_malformed, path, "it has no object weight_map");
  weight_map map;
  for (const auto& [tensor, shard] : (*document)["weight_map"].items()) {
    if (!shard.is_string() || !is_plain(shard.get_ref<const std::string&>()))
      return fail(
          reason::file_malformed, path,
          fmt::format("the shard of tensor \"{}\" is no plain file name", printable(tensor)));
    map.emplace_hint(map.end(), tensor, shard.get_ref<const std::string&>());
  }
  if (map.empty()) return fail(reason::file_malformed, path, "its weight_map is empty");
  return map;
}

// Every tensor of the index stands in its shard, and every tensor of a shard in the index.
expected<void> check_agreement(
    const std::string& index, const weight_map& map,
    const std::map<std::string, const tensor_file*, std::less<>>& files) {
  for (const auto& [tensor, shard] : map) {
    if (files.find(shard)->second->header().find(tensor) == nullptr)
      return fail(reason::file_malformed, index,
                  fmt::format("tensor \"{}\" is not in {}, where the index has it",
                              printable(tensor), shard));
  }
  for (const auto& [shard, file] : files) {
    for (const tensor_info& tensor : file->header().tensors) {
      const auto at = map.find(tensor.name);
      if (at == map.end())
        return fail(
            reason::file_malformed, index,
            fmt::format("tensor \"{}\" of {} is not in the index", printable(tensor.name), shard));
      if (at->second != shard)
        return fail(reason::file_malformed, index,
                    fmt::format("tensor \"{}\" stands in {} too; the index has it in {}",
                                printable(tensor.name), shard, at->second));
    }
  }
  return {};
}

expected<std::uint64_t> digest_of(std::span<const std::string> names,
                                  std::span<const std::unique_ptr<tensor_file>> files) {
  std::vector<std::byte> canonical;
  const auto add = [&](const void* data, std::size_t size) {
    const auto* bytes = static_cast<const std::byte*>(data);
    canonical.insert(canonical.end(), bytes, bytes + size);
  };
  for (std::size_t i = 0; i < files.size(); ++i) {
    const auto sample = files[i]->sample();
    if (!sample) return sample;
    const std::string line = fmt::format("{}\n{}\n{:016x}\n", names[i], files[i]->size(), *sample);
    add(line.data(), line.size());
    add(files[i]->header_digest().data(), files[i]->header_digest().size());
  }
  return first_64_bits(sha256(canonical));
}

bool exists(const std::string& path) { return ::access(path.c_str(), F_OK) == 0; }

}  // namespace

shard_set::shard_set(std::vector<std::unique_ptr<tensor_file>> shards, std::uint64_t digest)
    : shards_(std::move(shards)), digest_(digest) {
  for (const auto& file : shards_) {
    for (const tensor_info& tensor : file->header().tensors)
      tensors_.push_back({file.get(), &tensor});
  }
  std::sort(tensors_.begin(), tensors_.end(), [](const tensor_place& a, const tensor_place& b) {
    return a.tensor->name < b.tensor->name;
  });
}

tensor_place shard_set::find(std::string_view name) const noexcept {
  const auto at = std::lower_bound(tensors_.begin(), tensors_.end(), name,
                                   [](const tensor_place& place, std::string_view wanted) {
                                     return place.tensor->name < wanted;
                                   });
  return at == tensors_.end() || at->tensor->name != name ? tensor_place{} : *at;
}

expected<std::unique_ptr<shard_set>> shard_set::open(const std::string& directory) {
  const std::string index = fmt::format("{}/{}", directory, k_index);
  const bool sharded = exists(index);
  if (sharded && exists(fmt::format("{}/{}", directory, k_single)))
    return fail(reason::file_malformed, directory,
                fmt::format("it holds both {} and {}; which is meant?", k_single, k_index));

  std::vector<std::string> names{std::string(k_single)};
  weight_map map;
  if (sharded) {
    auto given = read_index(index);
    if (!given) return unexpected_error(std::move(given.error()));
    map = std::move(*given);
    names.clear();
    for (const auto& [tensor, shard] : map) names.push_back(shard);
    std::sort(names.begin(), names.end());
    names.erase(std::unique(names.begin(), names.end()), names.end());
    if (names.size() > k_shards_max)
      return fail(reason::limit_exceeded, fmt::format("the number of shards in {}", index),
                  names.size(), k_shards_max);
  }

  std::vector<std::unique_ptr<tensor_file>> shards;
  std::map<std::string, const tensor_file*, std::less<>> by_name;
  for (const std::string& name : names) {
    auto shard = tensor_file::open(fmt::format("{}/{}", directory, name));
    if (!shard) return unexpected_error(std::move(shard.error()));
    by_name.emplace(name, shard->get());
    shards.push_back(std::move(*shard));
  }
  if (sharded) {
    if (auto agreed = check_agreement(index, map, by_name); !agreed)
      return unexpected_error(std::move(agreed.error()));
  }
  const auto digest = digest_of(names, shards);
  if (!digest) return unexpected_error(digest.error());
  return std::unique_ptr<shard_set>(new shard_set(std::move(shards), *digest));
}

}  // namespace moetier

#include <cstdio>
#include <filesystem>
#include <system_error>

#include <fmt/core.h>
#include <nlohmann/json.hpp>

#include "actors/cli/commands.hpp"
#include "actors/cli/table.hpp"
#include "actors/cli/tier_address.hpp"
#include "transport/client/link/tier_link.hpp"

namespace moetier::cli {
namespace {

using nlohmann::json;

std::string joined(const json& names) {
  std::string all;
  for (const json& name : names) {
    if (!name.is_string()) continue;
    if (!all.empty()) all += ',';
    all += name.get<std::string>();
  }
  return all.empty() ? "-" : all;
}

std::string list_text(const json& document) {
  if (!document.value("enabled", false)) return "this tier runs no adapters (moe.lora is off)\n";
  const json adapters = document.value("adapters", json::array());
  if (adapters.empty()) return "no adapters\n";
  table t({"id", "name", "state", "workers", "path"});
  std::string problems;
  for (const json& a : adapters) {
    const std::string name = a.value("name", "");
    t.add({std::to_string(a.value("adapter", std::uint32_t{0})), name,
           a.value("listed", false) ? "loaded" : "not everywhere",
           joined(a.value("workers", json::array())), a.value("path", "")});
    const std::string problem = a.value("problem", "");
    if (!problem.empty()) problems += fmt::format("{}: {}\n", name, problem);
  }
  return t.text() + problems;
}

}  // namespace

expected<exit_code> run_adapters(const command_line& line) {
  const adapter_options& o = line.adapter;
  // Workers run elsewhere: the name that reaches them begins at the root.
  std::error_code none;
  const std::string path = std::filesystem::absolute(o.directory, none).lexically_normal().string();
  const bool changes = line.what != command::adapters_list;
  auto link = changes ? reach_for_change(line, line.timeout) : reach(line, line.timeout);
  if (!link) return tl::unexpected(link.error());
  const auto text = line.what == command::adapters_load
                        ? (*link)->load_adapter(o.name, path, line.timeout)
                    : line.what == command::adapters_drop
                        ? (*link)->drop_adapter(o.name, line.timeout)
                        : (*link)->document(client::admin_document::adapters, line.timeout);
  if (!text) return tl::unexpected(text.error());
  const json document = json::parse(*text, nullptr, false);
  if (!document.is_object()) return fail(reason::frame_malformed, "the document is no JSON object");
  std::fputs((line.json ? *text + "\n" : list_text(document)).c_str(), stdout);
  return exit_code::done;
}

}  // namespace moetier::cli

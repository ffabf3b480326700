#include <fstream>
#include <optional>
#include <set>
#include <sstream>

#include <fmt/core.h>
#include <yaml-cpp/eventhandler.h>
#include <yaml-cpp/yaml.h>

#include "actors/config/layer.hpp"
#include "actors/config/tenant_table.hpp"

namespace moetier::config {
namespace {

constexpr std::size_t k_file_bytes_max = 1 << 20;
constexpr std::size_t k_depth_max = 3;  // model: {routing: {method: ...}}

// yaml-cpp keeps doubled keys and turns 010 into 8, so nodes are walked here and values stay text. An
// alias may stand inside its own mapping, or for a long text many times over: the depth and the text
// of all entries have limits of their own.
class walk final {
 public:
  explicit walk(std::string_view file) : file_(file) {}

  expected<layer> document(const YAML::Node& root) {
    if (root.IsNull()) return layer{};
    if (auto done = sections(root); !done) return tl::unexpected(done.error());
    return std::move(entries_);
  }

 private:
  std::string place(const YAML::Node& node) const {
    return fmt::format("{}:{}", file_, node.Mark().line + 1);
  }
  unexpected_error malformed(const YAML::Node& at, std::string_view why) const {
    return fail(reason::file_malformed, place(at), why);
  }

  expected<void> sections(const YAML::Node& root) {
    if (!root.IsMap()) return malformed(root, "it must be a mapping of sections");
    std::set<std::string> seen;
    for (const auto& pair : root) {
      if (auto key = unique_key(pair.first, seen); !key) return key;
      if (pair.second.IsNull()) continue;
      if (pair.first.Scalar() == "tenants") {
        if (auto done = tenants(pair.second); !done) return done;
        continue;
      }
      if (!pair.second.IsMap()) {
        return malformed(pair.second, "a section must be a mapping of settings");
      }
      if (auto done = section(pair.first.Scalar(), pair.second, 2); !done) return done;
    }
    return {};
  }

  // The one list: of mappings, in which `models` may be a list of names.
  expected<void> tenants(const YAML::Node& list) {
    if (!list.IsSequence()) return malformed(list, "tenants must be a list of mappings");
    if (list.size() > k_tenants_max) {
      return malformed(list, fmt::format("{} tenants; at most {}", list.size(), k_tenants_max));
    }
    for (std::size_t i = 0; i < list.size(); ++i) {
      if (!list[i].IsMap()) return malformed(list[i], "a tenant must be a mapping of settings");
      std::set<std::string> seen;
      for (const auto& pair : list[i]) {
        if (auto key = unique_key(pair.first, seen); !key) return key;
        const std::string name = fmt::format("tenants[{}].{}", i, pair.first.Scalar());
        std::string value;
        if (pair.second.IsScalar()) {
          value = pair.second.Scalar();
        } else if (pair.second.IsSequence() && pair.first.Scalar() == "models") {
          for (const auto& item : pair.second) {
            if (!item.IsScalar()) return malformed(item, "models must be a list of names");
            value += (value.empty() ? "" : ",") + item.Scalar();
            if (value.size() > k_file_bytes_max) break;  // add() says so
          }
        } else {
          return malformed(pair.first, fmt::format("setting {} must have one plain value", name));
        }
        if (auto added = add(name, std::move(value), pair.first); !added) return added;
      }
    }
    return {};
  }

  expected<void> section(const std::string& name, const YAML::Node& node, std::size_t depth) {
    std::set<std::string> seen;
    for (const auto& pair : node) {
      if (auto key = unique_key(pair.first, seen); !key) return key;
      const std::string key = name + "." + pair.first.Scalar();
      if (pair.second.IsMap() && depth < k_depth_max) {  // model.routing.method
        if (auto done = section(key, pair.second, depth + 1); !done) return done;
        continue;
      }
      const auto value = pair.second.IsScalar() ? std::optional(pair.second.Scalar())
                         : name == "security"   ? joined(pair.second)
                                                : std::nullopt;
      if (!value) {
        return malformed(pair.first, fmt::format("setting {} must have one plain value", key));
      }
      if (auto added = add(key, *value, pair.first); !added) return added;
    }
    return {};
  }

  expected<void> add(std::string key, std::string value, const YAML::Node& at) {
    entry e{std::move(key), std::move(value), place(at)};
    text_bytes_ += e.key.size() + e.value.size() + e.place.size();
    if (text_bytes_ > k_file_bytes_max) {
      return malformed(at, "with its aliases the file holds more than 1 MiB of settings");
    }
    entries_.push_back(std::move(e));
    return {};
  }

  // A list of plain words as one text, by commas.
  static std::optional<std::string> joined(const YAML::Node& list) {
    if (!list.IsSequence()) return std::nullopt;
    std::string text;
    for (const auto& item : list) {
      if (!item.IsScalar() || item.Scalar().find(',') != std::string::npos) return std::nullopt;
      text += (text.empty() ? "" : ",") + item.Scalar();
      if (text.size() > k_file_bytes_max) break;  // add() says so
    }
    return text;
  }

  expected<void> unique_key(const YAML::Node& key, std::set<std::string>& seen) const {
    if (!key.IsScalar()) return malformed(key, "a key must be a plain name");
    if (!seen.insert(key.Scalar()).second) {
      return malformed(key, fmt::format("key {} stands twice", key.Scalar()));
    }
    return {};
  }

  std::string_view file_;
  layer entries_;
  std::size_t text_bytes_ = 0;  // of all entries
};

// Looks at nothing: for counting documents.
class unheard final : public YAML::EventHandler {
  using mark = YAML::Mark;
  using word = std::string;
  void OnDocumentStart(const mark&) override {}
  void OnDocumentEnd() override {}
  void OnNull(const mark&, YAML::anchor_t) override {}
  void OnAlias(const mark&, YAML::anchor_t) override {}
  void OnScalar(const mark&, const word&, YAML::anchor_t, const word&) override {}
  void OnSequenceStart(const mark&, const word&, YAML::anchor_t,
                       YAML::EmitterStyle::value) override {}
  void OnSequenceEnd() override {}
  void OnMapStart(const mark&, const word&, YAML::anchor_t, YAML::EmitterStyle::value) override {}
  void OnMapEnd() override {}
};

// 0, 1, or 2 for more. yaml-cpp's own LoadAll() finds documents without end where one begins with a
// word that it does not take up, such as a comma.
int documents_in(const std::string& text) {
  std::istringstream stream(text);
  YAML::Parser parser(stream);
  unheard nobody;
  int count = 0;
  while (count < 2 && parser.HandleNextDocument(nobody)) ++count;
  return count;
}

}  // namespace

expected<layer> read_yaml(std::string_view text, std::string_view file_name) {
  try {
    const std::string whole(text);
    const int documents = documents_in(whole);
    if (documents == 0) return layer{};
    if (documents > 1) {
      return fail(reason::file_malformed, file_name, "it holds more than one document");
    }
    return walk(file_name).document(YAML::Load(whole));
  } catch (const YAML::Exception& e) {
    return fail(reason::file_malformed, fmt::format("{}:{}", file_name, e.mark.line + 1), e.msg);
  }
}

expected<layer> read_yaml_file(const std::string& path) {
  std::ifstream file(path, std::ios::binary);
  if (!file) return fail(reason::file_unreadable, path, "it cannot be opened");
  std::string text(k_file_bytes_max + 1, '\0');
  file.read(text.data(), static_cast<std::streamsize>(text.size()));
  if (file.bad()) return fail(reason::file_unreadable, path, "reading failed");
  text.resize(static_cast<std::size_t>(file.gcount()));
  if (text.size() > k_file_bytes_max) {
    return fail(reason::file_malformed, path, "it is larger than 1 MiB");
  }
  return read_yaml(text, path);
}

}  // namespace moetier::config

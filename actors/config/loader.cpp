#include "actors/config/loader.hpp"

#include <cctype>
#include <tuple>

#include <fmt/core.h>

#include "actors/config/endpoint.hpp"
#include "actors/config/key_table.hpp"
#include "actors/config/tenant_table.hpp"
#include "actors/config/word_list.hpp"

namespace moetier::config {
namespace {

template <class... Args>
unexpected_error refuse_at(const std::string& place, reason why, const Args&... args) {
  error e = make_error(why, args...);
  e.text = place + ": " + e.text;
  return unexpected_error(std::move(e));
}

// Places may come in any order; those before a given one exist with their defaults until then.
expected<void> apply_tenant(const entry& e, const tenant_key& key, loaded& into) {
  const tenant_row* row = find_tenant_row(key.name);
  if (row == nullptr) {
    return refuse_at(e.place, reason::config_unknown_key, e.key, nearest_tenant_key(key));
  }
  auto& tenants = into.values.tenants;
  if (tenants.size() <= key.place) tenants.resize(key.place + 1);
  if (!row->put(tenants[key.place], e.value)) {
    return refuse_at(e.place, reason::config_invalid, e.key,
                     fmt::format("'{}'", e.value.substr(0, 64)), row->allowed);
  }
  into.tenant_origins[e.key] = e.place;
  return {};
}

expected<void> apply(const entry& e, loaded& into) {
  if (const auto key = tenant_key_of(e.key)) return apply_tenant(e, *key, into);
  const key_row* row = find_key(e.key);
  if (row == nullptr) {
    return refuse_at(e.place, reason::config_unknown_key, e.key, nearest_key(e.key));
  }
  if (!row->put(into.values, e.value)) {
    return refuse_at(e.place, reason::config_invalid, e.key,
                     fmt::format("'{}'", e.value.substr(0, 64)), row->allowed);
  }
  into.origins[static_cast<std::size_t>(row - key_table().data())] = e.place;
  return {};
}

class joint_rules final {
 public:
  explicit joint_rules(const loaded& l) : loaded_(l) {}

  expected<void> check() const {
    const settings& s = loaded_.values;
    if (s.detect.timeout < 4 * s.detect.heartbeat) {
      return refuse("detect.timeout",
                    fmt::format("at least 4 heartbeats of {}", duration_text(s.detect.heartbeat)));
    }
    for (const std::string_view zone : {"security.rpc", "security.control"}) {
      if (auto whole = check_zone(zone); !whole) return whole;
    }
    // Beyond loopback: with certificates, or in the clear by an explicit wish. Actors trust each
    // other with everything, so nothing opens their link in the clear.
    for (const auto& [key, open, allowed] :
         {std::tuple("coordinator.rpc_listen",
                     !s.security.rpc.cert.empty() || has_word(s.security.insecure, "rpc"),
                     "host:port on loopback, or certificates (security.rpc), or --insecure rpc"),
          std::tuple("coordinator.control_listen", !s.security.control.cert.empty(),
                     "host:port on loopback, or certificates (security.control)"),
          std::tuple("worker.coordinator", !s.security.control.cert.empty(),
                     "host:port on loopback, or certificates (security.control)"),
          std::tuple("http.listen", has_word(s.security.insecure, "http"),
                     "host:port on loopback, or --insecure http")}) {
      const auto place = parse_endpoint(value_of(key));
      if (!place || (!is_loopback(place->host) && !open)) return refuse(key, allowed);
    }
    if (!is_loopback(s.transport.listen)) return refuse("transport.listen", "a loopback host");
    return check_tenants();
  }

 private:
  // No place is left out, and no name stands twice.
  expected<void> check_tenants() const {
    const auto& tenants = loaded_.values.tenants;
    for (std::size_t i = 0; i < tenants.size(); ++i) {
      const std::string match = fmt::format("tenants[{}].match", i);
      const auto given = loaded_.tenant_origins.find(match);
      if (given == loaded_.tenant_origins.end()) {
        const auto any = loaded_.tenant_origins.lower_bound(fmt::format("tenants[{}].", i));
        const bool some = any != loaded_.tenant_origins.end() &&
                          any->first.starts_with(fmt::format("tenants[{}].", i));
        const std::string place = some ? any->second : loaded_.tenant_origins.rbegin()->second;
        return refuse_at(place, reason::config_invalid, match, "not set",
                         "a name for every tenant of the list");
      }
      for (std::size_t j = 0; j < i; ++j) {
        if (tenants[j].match != tenants[i].match) continue;
        return refuse_at(given->second, reason::config_invalid, match,
                         fmt::format("'{}'", tenants[i].match),
                         fmt::format("a name that is not tenants[{}]'s already", j));
      }
    }
    return {};
  }

  // A zone's three files stand together.
  expected<void> check_zone(std::string_view zone) const {
    std::string_view missing;
    std::string_view given;
    for (const std::string_view name : {".cert", ".key", ".ca"}) {
      const key_row* row = find_key(fmt::format("{}{}", zone, name));
      (row->show(loaded_.values).empty() ? missing : given) = row->key;
    }
    if (missing.empty() || given.empty()) return {};
    return refuse_at(origin_of(given), reason::config_invalid, missing, "not set",
                     fmt::format("a file, as {} has one", given));
  }

  std::string value_of(std::string_view key) const { return find_key(key)->show(loaded_.values); }
  const std::string& origin_of(std::string_view key) const {
    return loaded_.origins[static_cast<std::size_t>(find_key(key) - key_table().data())];
  }
  unexpected_error refuse(std::string_view key, std::string_view allowed) const {
    return refuse_at(origin_of(key), reason::config_invalid, key,
                     fmt::format("'{}'", value_of(key)), allowed);
  }

  const loaded& loaded_;
};

std::string tenant_origin(const loaded& l, std::size_t place, const tenant_row& row) {
  const auto at = l.tenant_origins.find(fmt::format("tenants[{}].{}", place, row.name));
  return at == l.tenant_origins.end() ? "default" : at->second;
}

std::string quoted(std::string_view text) {
  std::string out = "\"";
  for (const char c : text) {
    if (c == '"' || c == '\\') {
      out += '\\';
      out += c;
    } else if (std::iscntrl(static_cast<unsigned char>(c)) != 0) {
      out += fmt::format("\\u{:04x}", static_cast<unsigned>(static_cast<unsigned char>(c)));
    } else {
      out += c;
    }
  }
  return out + "\"";
}

}  // namespace

expected<loaded> load(std::span<const layer> layers) {
  loaded result;
  result.origins.assign(key_table().size(), "default");
  for (const layer& entries : layers) {
    for (const entry& e : entries) {
      if (auto done = apply(e, result); !done) return tl::unexpected(done.error());
    }
  }
  if (auto legal = joint_rules(result).check(); !legal) return tl::unexpected(legal.error());
  return result;
}

std::string print_yaml(const loaded& l) {
  std::string out;
  std::string_view section;
  for (std::size_t i = 0; i < key_table().size(); ++i) {
    const key_row& row = key_table()[i];
    const std::size_t dot = row.key.find('.');
    if (row.key.substr(0, dot) != section) {
      section = row.key.substr(0, dot);
      out += fmt::format("{}:\n", section);
    }
    const std::string value = row.show(l.values);
    // An unset text has no legal value: it is shown, but not set again by whoever loads this.
    const std::string line = value.empty()
                                 ? fmt::format("  # {}:", row.key.substr(dot + 1))
                                 : fmt::format("  {}: {}", row.key.substr(dot + 1), quoted(value));
    out += fmt::format("{:<44} # {}\n", line, l.origins[i]);
  }
  if (l.values.tenants.empty()) return out + fmt::format("{:<44} # {}\n", "tenants: []", "default");
  out += "tenants:\n";
  for (std::size_t i = 0; i < l.values.tenants.size(); ++i) {
    const char* bullet = "  - ";
    for (const tenant_row& row : tenant_table()) {
      const std::string value = row.show(l.values.tenants[i]);
      if (value.empty()) continue;
      const std::string line = fmt::format("{}{}: {}", bullet, row.name, quoted(value));
      out += fmt::format("{:<44} # {}\n", line, tenant_origin(l, i, row));
      bullet = "    ";
    }
  }
  return out;
}

std::string print_json(const loaded& l) {
  std::string out = "{\"schema\":\"moetier.config/1\",\"settings\":{";
  for (std::size_t i = 0; i < key_table().size(); ++i) {
    out += fmt::format("{}{}:{{\"value\":{},\"origin\":{}}}", i == 0 ? "" : ",",
                       quoted(key_table()[i].key), quoted(key_table()[i].show(l.values)),
                       quoted(l.origins[i]));
  }
  for (std::size_t i = 0; i < l.values.tenants.size(); ++i) {
    for (const tenant_row& row : tenant_table()) {
      out += fmt::format(",{}:{{\"value\":{},\"origin\":{}}}",
                         quoted(fmt::format("tenants[{}].{}", i, row.name)),
                         quoted(row.show(l.values.tenants[i])), quoted(tenant_origin(l, i, row)));
    }
  }
  return out + "}}\n";
}

}  // namespace moetier::config

#include <charconv>

#include <fmt/core.h>
#include <nlohmann/json.hpp>

#include "schemas/file/strict_json.hpp"
#include "schemas/resolution/json_fields.hpp"
#include "schemas/resolution/report.hpp"

namespace moetier::resolution {
namespace {

using json = nlohmann::json;
using ordered = nlohmann::ordered_json;

constexpr std::string_view k_schema = "moetier.resolution/1";
constexpr std::size_t k_hex_digits = 16;

template <class T>
ordered object_of(const T& value) {
  json_writer fields;
  walk(value, fields);
  return fields.take();
}

// 64 bits as text: JSON's numbers end at 2^53 for many readers.
std::string hex(std::uint64_t value) { return fmt::format("{:016x}", value); }

ordered list_of(const std::vector<rejection>& all) {
  ordered list = ordered::array();
  for (const rejection& r : all)
    list.push_back({{"candidate", r.candidate},
                    {"reason", std::string(reject_name(r.why))},
                    {"detail", r.detail},
                    {"workers", r.workers}});
  return list;
}

ordered list_of(const std::vector<possibility>& all) {
  ordered list = ordered::array();
  for (const possibility& p : all)
    list.push_back({{"candidate", p.candidate}, {"unknown", p.unknown}, {"workers", p.workers}});
  return list;
}

ordered document_of(const resolution_report& r) {
  ordered prints = ordered::array();
  for (const auto& [worker, print] : r.env_fingerprints)
    prints.push_back({{"worker", worker}, {"fingerprint", print}});
  return {{"schema", std::string(k_schema)},
          {"winner", r.winner},
          {"requested", r.requested},
          {"selected_by", std::string(word_of(r.selected))},
          {"resolution_id", hex(r.resolution_id)},
          {"epoch", r.epoch},
          {"env_fingerprints", prints},
          {"eligible", r.eligible},
          {"possible", list_of(r.possible)},
          {"rejected", list_of(r.rejected)},
          {"degraded_from", r.degraded_from},
          {"problem", object_of(r.what)},
          {"deployment", object_of(r.where)},
          {"routing",
           {{"kernel", r.routing.kernel},
            {"fallback_reason", r.routing.fallback_reason},
            {"limit", r.routing.limit},
            {"value", r.routing.value}}},
          {"communication",
           {{"winner", r.communication.winner},
            {"fallback", r.communication.fallback},
            {"rejected", list_of(r.communication.rejected)},
            {"possible", list_of(r.communication.possible)}}},
          {"combine_dtype", std::string(dtype_name(r.combine_dtype))},
          {"pads_to", r.pads_to},
          {"notes", r.notes}};
}

// Reads the document part by part; the first problem is kept, whatever part it is in.
class report_reader final {
 public:
  bool sound() const noexcept { return problem_.empty(); }
  const std::string& problem() const noexcept { return problem_; }

  // One object: `read` gets its reader.
  template <class Read>
  void object(const json& from, std::string_view place, Read&& read) {
    if (!sound()) return;
    json_reader fields(from, place);
    if (from.is_object()) read(fields);
    problem_ = fields.ended();
  }

  // The member `name` of `from`, a list of objects.
  template <class T, class Read>
  void list(json_reader& fields, const json& from, const char* name, std::vector<T>& into,
            Read&& read) {
    fields.also(name);
    const auto at = from.find(name);
    if (at == from.end() || !at->is_array() || at->size() > k_list_max)
      return fields.refuse(fmt::format("{} must be a list of at most {}", name, k_list_max));
    for (const json& entry : *at)
      object(entry, name, [&](json_reader& inner) { read(inner, into.emplace_back()); });
    if (!sound()) fields.refuse(problem_);
  }

  template <class Read>
  void member(json_reader& fields, const json& from, const char* name, Read&& read) {
    fields.also(name);
    const auto at = from.find(name);
    if (at == from.end() || !at->is_object())
      return fields.refuse(fmt::format("{} must be an object", name));
    object(*at, name, [&](json_reader& inner) { read(inner, *at); });
    if (!sound()) fields.refuse(problem_);
  }

  void rejections(json_reader& fields, const json& from, std::vector<rejection>& into) {
    list(fields, from, "rejected", into, [](json_reader& f, rejection& r) {
      std::string why;
      f("candidate", r.candidate);
      f("reason", why);
      if (!reject_of(why, r.why)) f.refuse(fmt::format("reason {} is not known", printable(why)));
      f("detail", r.detail);
      f("workers", r.workers);
    });
  }

  void possibilities(json_reader& fields, const json& from, std::vector<possibility>& into) {
    list(fields, from, "possible", into, [](json_reader& f, possibility& p) {
      f("candidate", p.candidate);
      f("unknown", p.unknown);
      f("workers", p.workers);
    });
  }

 private:
  std::string problem_;
};

void read_id(json_reader& fields, std::uint64_t& id) {
  std::string text;
  fields("resolution_id", text);
  const char* const end = text.data() + text.size();
  const auto [stop, failed] = std::from_chars(text.data(), end, id, 16);
  if (text.size() != k_hex_digits || stop != end || failed != std::errc())
    fields.refuse("resolution_id must be 16 hexadecimal digits");
}

void read_communication(report_reader& reader, json_reader& f, const json& from,
                        carrier_choice& into) {
  f("winner", into.winner);
  f("fallback", into.fallback);
  reader.rejections(f, from, into.rejected);
  reader.possibilities(f, from, into.possible);
}

void read_fields(report_reader& reader, json_reader& fields, const json& from,
                 resolution_report& r) {
  std::string schema;
  fields("schema", schema);
  if (schema != k_schema) fields.refuse(fmt::format("its schema is not {}", k_schema));
  fields("winner", r.winner);
  fields("requested", r.requested);
  fields("selected_by", r.selected);
  read_id(fields, r.resolution_id);
  fields("epoch", r.epoch);
  reader.list(fields, from, "env_fingerprints", r.env_fingerprints,
              [](json_reader& f, std::pair<std::string, std::string>& print) {
                f("worker", print.first);
                f("fingerprint", print.second);
              });
  fields("eligible", r.eligible);
  reader.possibilities(fields, from, r.possible);
  reader.rejections(fields, from, r.rejected);
  fields("degraded_from", r.degraded_from);
  reader.member(fields, from, "problem", [&](json_reader& f, const json&) { walk(r.what, f); });
  reader.member(fields, from, "deployment", [&](json_reader& f, const json&) { walk(r.where, f); });
  reader.member(fields, from, "routing", [&](json_reader& f, const json&) {
    f("kernel", r.routing.kernel);
    f("fallback_reason", r.routing.fallback_reason);
    f("limit", r.routing.limit);
    f("value", r.routing.value);
  });
  reader.member(fields, from, "communication", [&](json_reader& f, const json& at) {
    read_communication(reader, f, at, r.communication);
  });
  fields("combine_dtype", r.combine_dtype);
  fields("pads_to", r.pads_to);
  fields("notes", r.notes);
}

}  // namespace

std::string canonical_json(const resolution_report& r) {
  return document_of(r).dump(-1, ' ', false, ordered::error_handler_t::replace);
}

std::string readable_json(const resolution_report& r) {
  return document_of(r).dump(2, ' ', false, ordered::error_handler_t::replace) + "\n";
}

expected<resolution_report> read_report(std::string_view text, std::string_view name) {
  if (text.size() > k_document_bytes_max)
    return fail(reason::limit_exceeded, fmt::format("the size of {} in bytes", name), text.size(),
                k_document_bytes_max);
  auto document = parse_json(text, name);
  if (!document) return unexpected_error(std::move(document.error()));
  resolution_report r;
  report_reader reader;
  reader.object(*document, "report",
                [&](json_reader& fields) { read_fields(reader, fields, *document, r); });
  if (!reader.sound()) return fail(reason::file_malformed, name, reader.problem());
  if (auto checked = check_problem(r.what); !checked) return unexpected_error(checked.error());
  if (auto checked = check_deployment(r.where); !checked) return unexpected_error(checked.error());
  return r;
}

}  // namespace moetier::resolution

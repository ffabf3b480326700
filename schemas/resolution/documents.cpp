#include "schemas/resolution/documents.hpp"

#include <fmt/core.h>
#include <nlohmann/json.hpp>

#include "schemas/file/strict_json.hpp"
#include "schemas/resolution/json_fields.hpp"

namespace moetier::resolution {
namespace {

constexpr std::string_view k_problem = "moetier.problem/1";
constexpr std::string_view k_deployment = "moetier.deployment/1";
constexpr std::string_view k_environment = "moetier.environment/1";

template <class T>
std::string written(std::string_view schema, const T& value) {
  json_writer fields;
  fields("schema", std::string(schema));
  walk(value, fields);
  return fields.take().dump(2, ' ', false, nlohmann::ordered_json::error_handler_t::replace) + "\n";
}

template <class T>
expected<T> read(std::string_view schema, std::string_view place, std::string_view text,
                 std::string_view name) {
  if (text.size() > k_document_bytes_max)
    return fail(reason::limit_exceeded, fmt::format("the size of {} in bytes", name), text.size(),
                k_document_bytes_max);
  auto document = parse_json(text, name);
  if (!document) return unexpected_error(std::move(document.error()));
  T value;
  json_reader fields(*document, place);
  std::string given;
  fields("schema", given);
  if (given != schema) fields.refuse(fmt::format("its schema is not {}", schema));
  walk(value, fields);
  if (const std::string problem = fields.ended(); !problem.empty())
    return fail(reason::file_malformed, name, problem);
  return value;
}

}  // namespace

std::string document_of(const problem& p) { return written(k_problem, p); }
std::string document_of(const deployment& d) { return written(k_deployment, d); }
std::string document_of(const environment& e) { return written(k_environment, e); }

expected<problem> read_problem(std::string_view text, std::string_view name) {
  auto p = read<problem>(k_problem, "problem", text, name);
  if (!p) return p;
  if (auto checked = check_problem(*p); !checked) return unexpected_error(checked.error());
  return p;
}

expected<deployment> read_deployment(std::string_view text, std::string_view name) {
  auto d = read<deployment>(k_deployment, "deployment", text, name);
  if (!d) return d;
  if (auto checked = check_deployment(*d); !checked) return unexpected_error(checked.error());
  return d;
}

expected<environment> read_environment(std::string_view text, std::string_view name) {
  auto e = read<environment>(k_environment, "environment", text, name);
  if (!e || e->device) return e;
  std::string allowed;
  for (unsigned i = 0; i < words_of(device_kind{}); ++i)
    allowed += fmt::format("{}{}", i == 0 ? "" : ", ", word_of(static_cast<device_kind>(i)));
  return fail(reason::file_malformed, name,
              fmt::format("environment needs device, one of {}", allowed));
}

}  // namespace moetier::resolution

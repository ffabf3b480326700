#include "schemas/file/strict_json.hpp"

#include <string>
#include <utility>
#include <vector>

#include <fmt/core.h>
#include <nlohmann/json.hpp>

#include "schemas/file/json_literals.hpp"
#include "schemas/file/printable.hpp"

namespace moetier {
namespace {

using json = nlohmann::json;

// Builds the document from the parser's events; the first breach stops it with `problem`.
class document_builder final : public nlohmann::json_sax<json> {
 public:
  using literal_values = std::vector<std::pair<std::size_t, double>>;
  document_builder(const json_limits& limits, const literal_values& literals)
      : limits_(limits), literals_(literals) {}

  json root;
  std::string problem;

  bool null() override { return put(nullptr) != nullptr; }
  bool boolean(bool v) override { return put(v) != nullptr; }
  bool number_integer(number_integer_t v) override { return put_number(v); }
  bool number_unsigned(number_unsigned_t v) override { return put_number(v); }
  bool number_float(number_float_t v, const string_t&) override {
    const bool literal =
        next_literal_ < literals_.size() && literals_[next_literal_].first == numbers_;
    return put_number(literal ? literals_[next_literal_++].second : v);
  }
  bool string(string_t& v) override { return put(std::move(v)) != nullptr; }
  bool binary(binary_t&) override { return refuse("it holds binary data"); }
  bool start_object(std::size_t) override { return open(json::object()); }
  bool start_array(std::size_t) override { return open(json::array()); }
  bool end_object() override { return close(); }
  bool end_array() override { return close(); }

  bool key(string_t& name) override {
    if (open_.back()->contains(name))
      return refuse(fmt::format("key \"{}\" stands twice", printable(name)));
    key_ = std::move(name);
    return true;
  }

  bool parse_error(std::size_t position, const std::string&,
                   const nlohmann::detail::exception&) override {
    return refuse(fmt::format("no JSON at byte {}", position));
  }

 private:
  bool refuse(std::string what) {
    problem = std::move(what);
    return false;
  }

  bool put_number(json value) {
    ++numbers_;
    return put(std::move(value)) != nullptr;
  }

  json* put(json value) {
    if (++values_ > limits_.values_max) {
      refuse(fmt::format("it holds more than {} values", limits_.values_max));
      return nullptr;
    }
    if (open_.empty()) {
      root = std::move(value);
      return &root;
    }
    json& parent = *open_.back();
    if (parent.is_array()) {
      parent.push_back(std::move(value));
      return &parent.back();
    }
    return &(parent[key_] = std::move(value));
  }

  // Pointers stay valid: a parent gets no further value while its child is open.
  bool open(json container) {
    if (open_.size() == limits_.depth_max)
      return refuse(fmt::format("it nests deeper than {}", limits_.depth_max));
    json* const place = put(std::move(container));
    if (place != nullptr) open_.push_back(place);
    return place != nullptr;
  }

  bool close() {
    open_.pop_back();
    return true;
  }

  const json_limits& limits_;
  const literal_values& literals_;  // by number of the number, ascending
  std::size_t next_literal_ = 0;
  std::size_t numbers_ = 0;
  std::vector<json*> open_;
  std::string key_;
  std::size_t values_ = 0;
};

}  // namespace

expected<nlohmann::json> parse_json(std::string_view text, std::string_view file,
                                    const json_limits& limits) {
  // The parser takes a NUL for the end of its input and would accept whatever follows.
  if (const auto at = text.find('\0'); at != text.npos)
    return fail(reason::file_malformed, file, fmt::format("byte {} is NUL", at));
  json_literals literals;
  if (limits.non_finite) {
    literals = replace_literals(text);
    text = literals.text;
  }
  document_builder builder(limits, literals.values);
  if (!json::sax_parse(text.begin(), text.end(), &builder))
    return fail(reason::file_malformed, file, builder.problem);
  return std::move(builder.root);
}

}  // namespace moetier

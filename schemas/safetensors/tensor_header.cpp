#include "schemas/safetensors/tensor_header.hpp"

#include <algorithm>
#include <numeric>

#include <fmt/core.h>
#include <nlohmann/json.hpp>

#include "schemas/file/printable.hpp"

namespace moetier {
namespace {

std::string in_quotes(std::string_view name) { return fmt::format("\"{}\"", printable(name)); }

// Follows the format's grammar event by event. Whatever stands in a place where the format has
// something else stops it at once, so nesting never passes three.
class header_events final : public nlohmann::json_sax<nlohmann::json> {
 public:
  tensor_header header;
  std::string problem;

  bool null() override { return misplaced("null"); }
  bool boolean(bool) override { return misplaced("a truth value"); }
  bool number_integer(number_integer_t) override { return misplaced("a negative number"); }
  bool number_float(number_float_t, const string_t&) override {
    return misplaced("a number that is no 64-bit integer");
  }
  bool binary(binary_t&) override { return misplaced("binary data"); }

  bool number_unsigned(number_unsigned_t value) override {
    if (place_ == place::shape) {
      if (tensor_.rank == k_tensor_rank_max)
        return refuse(fmt::format("tensor {} has more than {} dimensions", in_quotes(tensor_.name),
                                  k_tensor_rank_max));
      tensor_.sizes[tensor_.rank++] = value;
      return true;
    }
    if (place_ == place::offsets) {
      if (offsets_ == 2)
        return refuse(
            fmt::format("tensor {} has more than two data_offsets", in_quotes(tensor_.name)));
      (offsets_++ == 0 ? tensor_.begin : tensor_.end) = value;
      return true;
    }
    return misplaced("a number");
  }

  bool string(string_t& value) override {
    if (place_ == place::metadata) {
      header.metadata.emplace_back(std::move(key_), std::move(value));
      return true;
    }
    if (place_ != place::tensor || field_ != field::dtype) return misplaced("a string");
    tensor_.type = find_tensor_type(value);
    if (tensor_.type == nullptr)
      return refuse(fmt::format("tensor {} has the unknown dtype {}", in_quotes(tensor_.name),
                                in_quotes(value)));
    return true;
  }

  bool start_object(std::size_t) override {
    if (place_ == place::outside) {
      place_ = place::root;
      return true;
    }
    if (place_ != place::root) return misplaced("an object");
    if (key_ == "__metadata__") {
      if (metadata_seen_) return refuse("key \"__metadata__\" stands twice");
      metadata_seen_ = true;
      place_ = place::metadata;
      return true;
    }
    tensor_ = tensor_info{};
    tensor_.name = std::move(key_);
    fields_seen_ = 0;
    place_ = place::tensor;
    return true;
  }

  bool key(string_t& name) override {
    if (place_ != place::tensor) {
      key_ = std::move(name);
      return true;
    }
    if (name == "dtype") {
      field_ = field::dtype;
    } else if (name == "shape") {
      field_ = field::shape;
    } else if (name == "data_offsets") {
      field_ = field::data_offsets;
    } else {
      return refuse(fmt::format("tensor {} has the unknown key {}", in_quotes(tensor_.name),
                                in_quotes(name)));
    }
    const unsigned bit = 1u << static_cast<unsigned>(field_);
    if ((fields_seen_ & bit) != 0)
      return refuse(fmt::format("key {} of tensor {} stands twice", in_quotes(name),
                                in_quotes(tensor_.name)));
    fields_seen_ |= bit;
    return true;
  }

  bool end_object() override {
    if (place_ == place::tensor) {
      if (fields_seen_ != 7)
        return refuse(
            fmt::format("tensor {} lacks dtype, shape or data_offsets", in_quotes(tensor_.name)));
      header.tensors.push_back(std::move(tensor_));
    }
    place_ = place_ == place::root ? place::outside : place::root;
    return true;
  }

  bool start_array(std::size_t) override {
    if (place_ != place::tensor || field_ == field::dtype) return misplaced("a list");
    place_ = field_ == field::shape ? place::shape : place::offsets;
    offsets_ = 0;
    return true;
  }

  bool end_array() override {
    if (place_ == place::offsets && offsets_ != 2)
      return refuse(
          fmt::format("tensor {} has fewer than two data_offsets", in_quotes(tensor_.name)));
    place_ = place::tensor;
    return true;
  }

  bool parse_error(std::size_t position, const std::string&,
                   const nlohmann::detail::exception&) override {
    return refuse(fmt::format("the header is no JSON at byte {}", position));
  }

 private:
  enum class place { outside, root, metadata, tensor, shape, offsets };
  enum class field { dtype, shape, data_offsets };

  bool refuse(std::string what) {
    problem = std::move(what);
    return false;
  }

  bool misplaced(std::string_view what) {
    switch (place_) {
      case place::outside: break;
      case place::root:
        return refuse(fmt::format("{} stands for tensor {}", what, in_quotes(key_)));
      case place::metadata:
        return refuse(fmt::format("{} stands in the metadata {}", what, in_quotes(key_)));
      case place::tensor:
      case place::shape:
      case place::offsets: {
        constexpr std::string_view k_names[] = {"dtype", "shape", "data_offsets"};
        return refuse(fmt::format("{} stands in the {} of tensor {}", what,
                                  k_names[static_cast<std::size_t>(field_)],
                                  in_quotes(tensor_.name)));
      }
    }
    return refuse(fmt::format("{} stands for the header", what));
  }

  place place_ = place::outside;
  field field_ = field::dtype;
  std::string key_;
  tensor_info tensor_;
  unsigned fields_seen_ = 0;  // a bit per field
  unsigned offsets_ = 0;
  bool metadata_seen_ = false;
};

// What is wrong with one tensor's sizes; empty = nothing.
std::string size_problem(const tensor_info& tensor, std::uint64_t data_bytes) {
  std::uint64_t bits = tensor.type->bits;
  for (const std::uint64_t size : tensor.shape()) {
    if (__builtin_mul_overflow(bits, size, &bits))
      return fmt::format("the size of tensor {} overflows", in_quotes(tensor.name));
  }
  if (bits % 8 != 0)
    return fmt::format("tensor {} does not fill whole bytes", in_quotes(tensor.name));
  if (tensor.begin > tensor.end)
    return fmt::format("tensor {} begins at {}, after its end {}", in_quotes(tensor.name),
                       tensor.begin, tensor.end);
  if (tensor.end > data_bytes)
    return fmt::format("tensor {} ends at byte {} of {} data bytes", in_quotes(tensor.name),
                       tensor.end, data_bytes);
  if (tensor.bytes() != bits / 8)
    return fmt::format("tensor {} is {}, {} bytes, but its data_offsets hold {}",
                       in_quotes(tensor.name), shape_text(*tensor.type, tensor.shape()), bits / 8,
                       tensor.bytes());
  return {};
}

// The data must be covered from its first byte to its last, each byte once.
std::string cover_problem(const std::vector<tensor_info>& tensors, std::uint64_t data_bytes) {
  std::vector<std::uint32_t> order(tensors.size());
  std::iota(order.begin(), order.end(), 0u);
  std::sort(order.begin(), order.end(), [&](std::uint32_t a, std::uint32_t b) {
    return std::pair(tensors[a].begin, tensors[a].end) <
           std::pair(tensors[b].begin, tensors[b].end);
  });
  std::uint64_t covered = 0;
  for (const std::uint32_t i : order) {
    const tensor_info& tensor = tensors[i];
    if (tensor.begin != covered)
      return fmt::format("tensor {} begins at {}, {} the end of its neighbour at {}",
                         in_quotes(tensor.name), tensor.begin,
                         tensor.begin > covered ? "behind a hole after" : "before", covered);
    covered = tensor.end;
  }
  if (covered != data_bytes)
    return fmt::format("its tensors end at byte {} of {} data bytes", covered, data_bytes);
  return {};
}

}  // namespace

const tensor_info* tensor_header::find(std::string_view name) const noexcept {
  const auto at = std::lower_bound(
      tensors.begin(), tensors.end(), name,
      [](const tensor_info& t, std::string_view wanted) { return t.name < wanted; });
  return at == tensors.end() || at->name != name ? nullptr : &*at;
}

expected<tensor_header> parse_tensor_header(std::string_view text, std::uint64_t data_bytes,
                                            std::string_view file) {
  if (text.size() > k_safetensors_header_bytes_max)
    return fail(reason::limit_exceeded, fmt::format("the header of {} in bytes", file), text.size(),
                k_safetensors_header_bytes_max);
  if (text.empty() || text.front() != '{')
    return fail(reason::file_malformed, file, "its header does not start with {");
  // The parser takes a NUL for the end of its input and would accept whatever follows.
  if (const auto at = text.find('\0'); at != text.npos)
    return fail(reason::file_malformed, file, fmt::format("byte {} of its header is NUL", at));

  header_events events;
  if (!nlohmann::json::sax_parse(text.begin(), text.end(), &events))
    return fail(reason::file_malformed, file, events.problem);
  tensor_header header = std::move(events.header);

  std::sort(header.tensors.begin(), header.tensors.end(),
            [](const auto& a, const auto& b) { return a.name < b.name; });
  const auto twin =
      std::adjacent_find(header.tensors.begin(), header.tensors.end(),
                         [](const auto& a, const auto& b) { return a.name == b.name; });
  if (twin != header.tensors.end())
    return fail(reason::file_malformed, file,
                fmt::format("key {} stands twice", in_quotes(twin->name)));
  std::sort(header.metadata.begin(), header.metadata.end());
  const auto pair =
      std::adjacent_find(header.metadata.begin(), header.metadata.end(),
                         [](const auto& a, const auto& b) { return a.first == b.first; });
  if (pair != header.metadata.end())
    return fail(reason::file_malformed, file,
                fmt::format("metadata key {} stands twice", in_quotes(pair->first)));

  std::string problem;
  for (const tensor_info& tensor : header.tensors) {
    if (problem = size_problem(tensor, data_bytes); !problem.empty())
      return fail(reason::file_malformed, file, problem);
  }
  if (problem = cover_problem(header.tensors, data_bytes); !problem.empty())
    return fail(reason::file_malformed, file, problem);
  return header;
}

}  // namespace moetier

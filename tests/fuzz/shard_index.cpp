// model.safetensors.index.json beside two whole shards.

#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <string>

#include "schemas/safetensors/shard_set.hpp"
#include "schemas/safetensors/tensor_writer.hpp"
#include "tests/fuzz/fuzz_target.hpp"

namespace moetier::fuzz {
namespace {

// A model directory of this process, with shards a (tensors x, y) and b (tensor z).
class directory final {
 public:
  directory() {
    // In memory where the system has such a place: a disk would be most of the time.
    const std::filesystem::path memory = "/dev/shm";
    const auto place =
        std::filesystem::exists(memory) ? memory : std::filesystem::temp_directory_path();
    std::string name = (place / "moetier-fuzz-XXXXXX").string();
    if (::mkdtemp(name.data()) == nullptr) std::abort();
    path_ = name;
    const std::vector<std::byte> bytes(8, std::byte{1});
    const tensor_to_write x{.name = "x", .element = dtype::f32, .shape = {2}, .bytes = bytes};
    const tensor_to_write y{.name = "y", .element = dtype::f32, .shape = {2}, .bytes = bytes};
    const tensor_to_write z{.name = "z", .element = dtype::f32, .shape = {2}, .bytes = bytes};
    const bool written = write_tensors(path_ + "/a.safetensors", std::vector{x, y}) &&
                         write_tensors(path_ + "/b.safetensors", std::vector{z});
    check(written, "the shards could not be written");
  }
  ~directory() { std::filesystem::remove_all(path_); }
  directory(const directory&) = delete;
  directory& operator=(const directory&) = delete;

  const std::string& with_index(std::span<const std::uint8_t> text) const {
    std::ofstream(path_ + "/model.safetensors.index.json", std::ios::binary)
        .write(reinterpret_cast<const char*>(text.data()),
               static_cast<std::streamsize>(text.size()));
    return path_;
  }

 private:
  std::string path_;
};

}  // namespace

void run(std::span<const std::uint8_t> bytes) {
  static const directory model;
  const auto set = shard_set::open(model.with_index(bytes));
  if (!set) return;
  check((*set)->tensors().size() == 3 || (*set)->tensors().size() == 2 ||
            (*set)->tensors().size() == 1,
        "tensors that no shard has");
  for (const tensor_place& t : (*set)->tensors()) {
    std::vector<std::byte> into(t.tensor->bytes());
    check(t.file->read(*t.tensor, into).has_value(), "a tensor cannot be read");
    check((*set)->find(t.tensor->name).tensor == t.tensor, "a tensor is not found");
  }
}

std::vector<input> seeds() {
  return {
      input_of(R"({"metadata":{"total_size":24},"weight_map":{"x":"a.safetensors",)"
               R"("y":"a.safetensors","z":"b.safetensors"}})"),
      input_of(R"({"weight_map":{"z":"b.safetensors"}})"),
      input_of(R"({"weight_map":{"x":"../a.safetensors"}})"),
      input_of(R"({"weight_map":{"x":"c.safetensors"}})"),
      input_of(R"({"weight_map":[]})"),
      input_of(R"({"weight_map":{}})"),
  };
}

}  // namespace moetier::fuzz

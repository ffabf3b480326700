#pragma once
// What one worker's machine and build can do: filled once, by the one probing point, and frozen.
// An optional field without a value is unknown, which is neither yes nor no; an empty text means
// that the machine has none of it. Whatever can change a choice stands here, so that equal
// fingerprints give equal choices. Thread: any (an immutable value).

#include <concepts>
#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <type_traits>
#include <vector>

#include "schemas/resolution/words.hpp"

namespace moetier::resolution {

struct environment {
  std::optional<device_kind> device;
  std::optional<std::string> architecture;         // "x86_64", "sm_90"
  std::optional<std::string> device_name;          // "NVIDIA H200"
  std::optional<std::uint64_t> memory_bytes;       // of the device, for weights
  std::optional<std::uint64_t> host_memory_bytes;  // the same of the host
  std::optional<std::string> driver;
  std::optional<std::string> cuda;
  std::map<std::string, std::string> libraries;  // by name; one that is not named is unknown
  std::optional<bool> cpu_avx2;
  std::optional<bool> cpu_fma;
  std::optional<bool> cpu_f16c;
  std::optional<bool> cpu_avx512f;
  std::optional<std::vector<std::string>> carriers;  // that can be opened here, ascending
  std::optional<std::vector<std::string>> kernels;   // built in: "cpu.avx2"; ascending
  std::map<std::string, std::string> layouts;        // how each kernel's layout ids begin
  std::map<std::string, std::string> settings;       // named ones that can change a choice
  std::optional<std::string> build_id;
  std::optional<std::string> kernel_set_hash;
  std::optional<std::uint32_t> numerics_routing;  // raised when results change bits
  std::optional<std::uint32_t> numerics_quantiser;
  std::optional<std::uint32_t> numerics_combine;
  std::optional<std::string> numeric_flags;

  bool operator==(const environment&) const = default;
};

std::string canonical_text(const environment& e);
// SHA-256 over the canonical text, in hexadecimal: 64 characters.
std::string fingerprint_of(const environment& e);

template <class Environment, class Visitor>
requires std::same_as<std::remove_const_t<Environment>, environment>
void walk(Environment& e, Visitor&& visit) {
  visit("device", e.device);
  visit("architecture", e.architecture);
  visit("device_name", e.device_name);
  visit("memory_bytes", e.memory_bytes);
  visit("host_memory_bytes", e.host_memory_bytes);
  visit("driver", e.driver);
  visit("cuda", e.cuda);
  visit("libraries", e.libraries);
  visit("cpu_avx2", e.cpu_avx2);
  visit("cpu_fma", e.cpu_fma);
  visit("cpu_f16c", e.cpu_f16c);
  visit("cpu_avx512f", e.cpu_avx512f);
  visit("carriers", e.carriers);
  visit("kernels", e.kernels);
  visit("layouts", e.layouts);
  visit("settings", e.settings);
  visit("build_id", e.build_id);
  visit("kernel_set_hash", e.kernel_set_hash);
  visit("numerics_routing", e.numerics_routing);
  visit("numerics_quantiser", e.numerics_quantiser);
  visit("numerics_combine", e.numerics_combine);
  visit("numeric_flags", e.numeric_flags);
}

}  // namespace moetier::resolution

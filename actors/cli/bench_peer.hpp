#pragma once
// Another library's matrix product in this process, if its module is there (gemm_peer.hpp).
// Thread: owner.

#include <memory>
#include <span>
#include <string>

#include "actors/cli/gemm_peer.hpp"
#include "schemas/base/error.hpp"

namespace moetier::cli {

// nullptr and why where there is none. `file`: empty = beside the program's own modules, "none" =
// without. reason::config_invalid where a named file cannot be used.
struct found_peer {
  const moetier_gemm_peer* peer = nullptr;  // lives as long as the process
  std::string why{};
};
expected<found_peer> find_gemm_peer(const std::string& file);

// One product of a peer. Requires: the spans' sizes fit the product.
class peer_product final {
 public:
  // nullptr where the peer cannot.
  static std::unique_ptr<peer_product> open(const moetier_gemm_peer& peer, std::uint32_t form,
                                            std::uint32_t rows, std::uint32_t outputs,
                                            std::uint32_t depth);
  ~peer_product() { peer_.close(product_); }
  peer_product(const peer_product&) = delete;
  peer_product& operator=(const peer_product&) = delete;

  std::size_t packed_bytes() const { return peer_.packed_bytes(product_); }
  void pack(std::span<const float> matrix, std::span<std::byte> packed) {
    peer_.pack(product_, matrix.data(), packed.data());
  }
  void run(const std::byte* packed, const float* in, float* out) {
    peer_.run(product_, packed, in, out);
  }

 private:
  peer_product(const moetier_gemm_peer& peer, void* product) : peer_(peer), product_(product) {}

  const moetier_gemm_peer& peer_;
  void* product_;
};

}  // namespace moetier::cli

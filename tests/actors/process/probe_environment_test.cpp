#include "actors/process/probe_environment.hpp"

#include <algorithm>

#include <gtest/gtest.h>

#include "kernels/backend.hpp"
#include "kernels/candidates/backend_candidate.hpp"
#include "schemas/resolution/documents.hpp"

namespace moetier {
namespace {

constexpr build_info k_build{"1.2.3", "abc",  "GNU 12.2.0", "Release",
                             "none",  "0.17", "0.9",        "1.13"};

resolution::environment probed(const config::settings& s = {}) {
  return probe_environment({.settings = s, .build = k_build, .carriers = {"in_process"}});
}

TEST(probing, fills_what_a_processor_can_tell) {
  const resolution::environment e = probed();
  const kernels::cpu_features cpu = kernels::detect_cpu_features();
  EXPECT_EQ(e.device, resolution::device_kind::cpu);
  EXPECT_EQ(e.cpu_avx2, cpu.avx2);
  EXPECT_EQ(e.cpu_fma, cpu.fma);
  EXPECT_EQ(e.cpu_f16c, cpu.f16c);
  EXPECT_EQ(e.cpu_avx512f, cpu.avx512f);
  ASSERT_TRUE(e.architecture && e.host_memory_bytes);
  EXPECT_FALSE(e.architecture->empty());
  EXPECT_GT(*e.host_memory_bytes, std::uint64_t{1} << 20);
  EXPECT_EQ(e.driver, "");
  EXPECT_EQ(e.cuda, "");
  EXPECT_EQ(e.build_id, "1.2.3 (abc)");
  EXPECT_EQ(e.libraries.at("ucx"), "1.13");
  EXPECT_EQ(e.numeric_flags, "contract=off,rounding=nearest,denormals=kept");
}

TEST(probing, is_the_same_every_time_and_survives_its_document) {
  const resolution::environment e = probed();
  EXPECT_EQ(e, probed());
  const auto read = resolution::read_environment(document_of(e), "e");
  ASSERT_TRUE(read) << read.error().text;
  EXPECT_EQ(fingerprint_of(*read), fingerprint_of(e));
}

TEST(probing, names_kernels_as_the_candidates_do) {
  const resolution::environment e = probed();
  ASSERT_TRUE(e.kernels);
  for (const std::string& kernel : *e.kernels) {
    quant_kind quant{};
    EXPECT_NE(kernels::candidate_of("moetier." + kernel + ".none", quant), nullptr) << kernel;
  }
  EXPECT_EQ(e.kernels->size(), e.layouts.size());
}

// What the environment says of layouts is what the backends' own layout ids begin with.
TEST(probing, names_layouts_as_the_backends_do) {
  const resolution::environment e = probed();
  for (const char* name : {"cpu_avx2", "cpu_ref", "reference"}) {
    const auto backend =
        kernels::make_cpu_backend(name, {.hidden_size = 16, .intermediate_size = 16}, {},
                                  {.avx2 = true, .fma = true, .avx512f = false, .f16c = true});
    ASSERT_TRUE(backend) << backend.error().text;
    quant_kind quant{};
    const auto* candidate = kernels::candidate_of((*backend)->identity(), quant);
    ASSERT_NE(candidate, nullptr);
    EXPECT_EQ(candidate->short_name, name);
    const std::string& layout = e.layouts.at(std::string(candidate->kernel));
    EXPECT_TRUE((*backend)->layout_id().starts_with(layout + ".")) << (*backend)->layout_id();
  }
}

TEST(probing, tells_a_devices_facts_and_kernels) {
  const workers::device_facts h200{.name = "NVIDIA H200",
                                   .architecture = "sm_90",
                                   .memory_bytes = 150'000'000'000,
                                   .driver = "580.1",
                                   .multiprocessors = 132,
                                   .kernels = {{"cuda.ref", "canonical"}}};
  config::settings s;
  const auto with = [&] {
    return probe_environment({.settings = s, .build = k_build, .carriers = {}, .device = &h200});
  };
  const resolution::environment e = with();
  EXPECT_EQ(e.device, resolution::device_kind::cuda);
  EXPECT_EQ(e.architecture, "sm_90");
  EXPECT_EQ(e.device_name, "NVIDIA H200");
  EXPECT_EQ(e.memory_bytes, 150'000'000'000u);
  EXPECT_EQ(e.host_memory_bytes, probed().host_memory_bytes);
  EXPECT_EQ(e.driver, "580.1");
  EXPECT_EQ(std::count(e.kernels->begin(), e.kernels->end(), "cuda.ref"), 1);
  EXPECT_TRUE(std::is_sorted(e.kernels->begin(), e.kernels->end()));
  EXPECT_EQ(e.layouts.at("cuda.ref"), "canonical");
  EXPECT_NE(e.kernel_set_hash, probed().kernel_set_hash);
  s.worker.memory = 123;  // of the device then
  EXPECT_EQ(with().memory_bytes, 123u);
  EXPECT_EQ(with().host_memory_bytes, e.host_memory_bytes);
}

TEST(probing, keeps_every_setting_that_can_change_a_choice) {
  config::settings s;
  s.worker.memory = 123;
  s.backend.force = "cpu_ref";
  const resolution::environment e = probed(s);
  EXPECT_EQ(e.host_memory_bytes, 123u);
  EXPECT_EQ(e.settings.at("backend.force"), "cpu_ref");
  EXPECT_NE(fingerprint_of(e), fingerprint_of(probed()));
}

TEST(probing, opens_the_carriers_that_are_there) {
  const auto carriers = probe_carriers({});
  EXPECT_TRUE(std::is_sorted(carriers.begin(), carriers.end()));
  EXPECT_EQ(std::count(carriers.begin(), carriers.end(), "in_process"), 1);
}

}  // namespace
}  // namespace moetier

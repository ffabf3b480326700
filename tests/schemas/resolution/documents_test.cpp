#include "schemas/resolution/documents.hpp"

#include <string>

#include <gtest/gtest.h>

#include "schemas/resolution/limits.hpp"
#include "tests/schemas/resolution/small_values.hpp"

namespace moetier::resolution {
namespace {

template <class T>
std::string sentence(const expected<T>& e) {
  return e ? "ok" : e.error().text;
}

std::string refusal(const std::string& text) { return sentence(read_environment(text, "e.json")); }

// A document with one key's value replaced.
std::string with(std::string text, const std::string& was, const std::string& is) {
  const std::size_t at = text.find(was);
  EXPECT_NE(at, text.npos) << was;
  return text.replace(at, was.size(), is);
}

TEST(documents, read_what_was_written) {
  EXPECT_EQ(*read_problem(document_of(small_problem()), "p"), small_problem());
  EXPECT_EQ(*read_deployment(document_of(small_deployment()), "d"), small_deployment());
  EXPECT_EQ(*read_environment(document_of(cpu_machine()), "e"), cpu_machine());
  environment unknown;
  unknown.device = device_kind::cuda;
  EXPECT_EQ(*read_environment(document_of(unknown), "e"), unknown);
}

TEST(documents, keep_a_field_that_is_left_out_unknown) {
  environment unknown;
  unknown.device = device_kind::cpu;
  for (const char* tables : {"", R"(, "libraries": {}, "layouts": null, "settings": {})"}) {
    const auto e = read_environment(
        R"({"schema": "moetier.environment/1", "device": "cpu")" + std::string(tables) + "}", "e");
    ASSERT_TRUE(e) << e.error().text;
    EXPECT_EQ(*e, unknown);
  }
}

TEST(documents, of_an_environment_must_name_the_device) {
  const std::string wanted = "e.json is malformed: environment needs device, one of cpu, cuda";
  EXPECT_EQ(refusal(R"({"schema": "moetier.environment/1"})"), wanted);
  EXPECT_EQ(refusal(R"({"schema": "moetier.environment/1", "device": null})"), wanted);
}

TEST(documents, refuse_what_they_do_not_know) {
  const std::string good = document_of(cpu_machine());
  EXPECT_EQ(refusal(good), "ok");
  EXPECT_EQ(refusal("[]"), "e.json is malformed: environment is no object");
  EXPECT_EQ(refusal("{}"), "e.json is malformed: environment needs schema");
  EXPECT_EQ(refusal(with(good, "environment/1", "environment/2")),
            "e.json is malformed: its schema is not moetier.environment/1");
  EXPECT_EQ(refusal(with(good, "\"driver\"", "\"drivers\"")),
            "e.json is malformed: unknown key drivers in environment");
  EXPECT_EQ(refusal(with(good, "\"cpu_avx2\": true", "\"cpu_avx2\": 1")),
            "e.json is malformed: environment cpu_avx2 must be true or false");
  EXPECT_EQ(refusal(with(good, "\"device\": \"cpu\"", "\"device\": \"tpu\"")),
            "e.json is malformed: environment device must be one of cpu, cuda");
  EXPECT_EQ(refusal(with(good, "\"numerics_combine\": 1", "\"numerics_combine\": 4294967296")),
            "e.json is malformed: environment numerics_combine must be a number from 0 to "
            "4294967295");
  EXPECT_EQ(refusal(with(good, "\"numerics_combine\": 1", "\"numerics_combine\": -1")),
            "e.json is malformed: environment numerics_combine must be a number from 0 to "
            "4294967295");
  EXPECT_EQ(refusal(with(good, "1.13.1", "1.13\\n")),
            "e.json is malformed: environment libraries ucx is no printable ASCII");
  EXPECT_EQ(refusal(with(good, "\"cpu.avx2\",", "7,")),
            "e.json is malformed: environment kernels entry 0 must be a text");
  EXPECT_EQ(refusal(with(good, "abc", std::string(2000, 'a'))),
            "e.json is malformed: environment build_id has 2008 bytes; at most 1024");
}

TEST(documents, bound_lists_and_sizes) {
  std::string many;
  for (std::size_t i = 0; i <= k_list_max; ++i) many += i == 0 ? "\"a\"" : ",\"a\"";
  EXPECT_EQ(refusal(R"({"schema": "moetier.environment/1", "carriers": [)" + many +
                    R"(], "libraries": {}, "layouts": {}, "settings": {}})"),
            "e.json is malformed: environment carriers must be a list of at most 4096");
  EXPECT_EQ(refusal(std::string(k_document_bytes_max + 1, ' ')),
            "the size of e.json in bytes is 1048577; at most 1048576");
}

TEST(documents, check_the_values_they_read) {
  EXPECT_EQ(sentence(read_problem(
                with(document_of(small_problem()), "\"top_k\": 2", "\"top_k\": 0"), "p.json")),
            "top_k is 0; allowed: 1 to 8");
  EXPECT_EQ(sentence(read_deployment(
                with(document_of(small_deployment()), "\"workers\": 2", "\"workers\": 0"), "d")),
            "workers is 0; allowed: 1 to 64");
  EXPECT_EQ(sentence(read_problem(
                with(document_of(small_problem()), "\"quant\": \"none\"", "\"quant\": \"w8\""),
                "p.json")),
            "p.json is malformed: problem quant must be one of none, fp8_tensor, fp8_block, mxfp8, "
            "mxfp4, nvfp4, int4_g128");
}

}  // namespace
}  // namespace moetier::resolution

#include "actors/cli/forward_input.hpp"

#include <cmath>
#include <cstdio>
#include <filesystem>
#include <fstream>
#include <limits>

#include <gtest/gtest.h>
#include <unistd.h>

#include "actors/cli/commands.hpp"
#include "schemas/safetensors/tensor_file.hpp"
#include "schemas/safetensors/tensor_writer.hpp"

namespace moetier::cli {
namespace {

// A file of its own per test, removed at its end.
class forward_input_test : public testing::Test {
 protected:
  forward_input_test()
      : path_((std::filesystem::temp_directory_path() /
               ("moetier_forward_" + std::to_string(::getpid()) + "_" +
                testing::UnitTest::GetInstance()->current_test_info()->name() + ".safetensors"))
                  .string()) {}
  ~forward_input_test() override { std::filesystem::remove(path_); }

  struct tensor {
    std::string name;
    dtype element;
    std::vector<std::uint64_t> shape;
  };
  void write(const std::vector<tensor>& tensors) {
    std::vector<std::vector<std::byte>> bytes;
    std::vector<tensor_to_write> out;
    for (const tensor& t : tensors) {
      std::size_t n = dtype_bytes(t.element);
      for (const std::uint64_t s : t.shape) n *= s;
      bytes.emplace_back(n, std::byte{0});
    }
    for (std::size_t i = 0; i < tensors.size(); ++i) {
      out.push_back({tensors[i].name, tensors[i].element, tensors[i].shape, bytes[i]});
    }
    ASSERT_TRUE(write_tensors(path_, out));
  }
  expected<forward_input> read(forward_options o = {}) {
    o.in = path_;
    return read_forward_input(o);
  }
  std::string why(forward_options o = {}) {
    const auto in = read(std::move(o));
    return in ? "(accepted)" : in.error().text;
  }

  std::string path_;
};

TEST_F(forward_input_test, reads_hidden_and_logits_under_a_prefix) {
  write({{"p.hidden", dtype::bf16, {3, 8}}, {"p.logits", dtype::f16, {3, 4}}});
  forward_options o;
  o.prefix = "p.";
  const auto in = read(o);
  ASSERT_TRUE(in) << in.error().text;
  EXPECT_EQ(in->tokens, 3U);
  EXPECT_EQ(in->hidden_size, 8U);
  EXPECT_EQ(in->hidden_type, dtype::bf16);
  EXPECT_EQ(in->experts, 4U);
  EXPECT_TRUE(in->ids.empty());
}

TEST_F(forward_input_test, reads_ids_of_every_allowed_type) {
  for (const dtype t : {dtype::u8, dtype::i32, dtype::i64}) {
    write({{"hidden", dtype::f32, {2, 4}}, {"ids", t, {2, 2}}, {"weights", dtype::f32, {2, 2}}});
    const auto in = read();
    ASSERT_TRUE(in) << in.error().text;
    EXPECT_EQ(in->ids, std::vector<std::int32_t>(4, 0));
    EXPECT_EQ(in->top_k, 2U);
  }
}

TEST_F(forward_input_test, zero_tokens_are_legal) {
  write({{"hidden", dtype::f32, {0, 4}}, {"logits", dtype::f32, {0, 2}}});
  EXPECT_EQ(why(), "(accepted)");
}

TEST_F(forward_input_test, both_logits_and_ids_need_a_choice) {
  write({{"hidden", dtype::f32, {1, 4}},
         {"logits", dtype::f32, {1, 2}},
         {"ids", dtype::i32, {1, 1}},
         {"weights", dtype::f32, {1, 1}}});
  const auto in = read();
  ASSERT_FALSE(in);
  EXPECT_EQ(in.error().why, reason::config_invalid);
  EXPECT_NE(in.error().text.find("logits, ids or gate"), std::string::npos) << in.error().text;
  forward_options o;
  o.use = "ids";
  EXPECT_EQ(read(o)->top_k, 1U);
  o.use = "logits";
  EXPECT_EQ(read(o)->experts, 2U);
}

TEST_F(forward_input_test, a_choice_that_the_file_lacks_is_a_usage_error) {
  write({{"hidden", dtype::f32, {1, 4}}, {"logits", dtype::f32, {1, 2}}});
  forward_options o;
  o.use = "ids";
  const auto in = read(o);
  ASSERT_FALSE(in);
  EXPECT_EQ(in.error().why, reason::config_invalid);
}

TEST_F(forward_input_test, a_header_beyond_the_limit_is_a_bad_file) {
  std::ofstream(path_, std::ios::binary) << std::string(64, '\x7f');
  const auto in = read();
  ASSERT_FALSE(in);
  EXPECT_EQ(in.error().why, reason::file_malformed) << in.error().text;
}

TEST_F(forward_input_test, refuses_what_does_not_fit_with_names_and_numbers) {
  write({{"hidden", dtype::i32, {1, 4}}, {"logits", dtype::f32, {1, 2}}});
  EXPECT_EQ(why(), "hidden has dtype I32; allowed: F32, F16, BF16");
  write({{"hidden", dtype::f32, {4}}, {"logits", dtype::f32, {1, 2}}});
  EXPECT_EQ(why(), "hidden has shape [4]; expected [tokens, columns]");
  write({{"hidden", dtype::f32, {2, 4}}, {"logits", dtype::f32, {1, 2}}});
  EXPECT_EQ(why(), "logits has shape [1, 2]; expected [2, columns], as hidden");
  write({{"hidden", dtype::f32, {1, 4}},
         {"ids", dtype::i32, {1, 2}},
         {"weights", dtype::f32, {1, 3}}});
  EXPECT_EQ(why(), "weights has shape [1, 3]; expected [1, 2], as ids");
  write({{"hidden", dtype::f32, {1, 4}}});
  EXPECT_EQ(why(), "cannot read tensor logits: " + path_ + " has none of that name; it has hidden");
}

TEST_F(forward_input_test, a_missing_tensor_is_named_beside_what_the_file_has) {
  std::vector<tensor> nine;
  for (int i = 1; i <= 9; ++i)
    nine.push_back({std::string("t").append(std::to_string(i)), dtype::f32, {1, 4}});
  write(nine);
  forward_options o;
  o.prefix = "layer0.";
  const auto in = read(o);
  ASSERT_FALSE(in);
  EXPECT_EQ(in.error().why, reason::file_unreadable);
  EXPECT_EQ(in.error().text, "cannot read tensor layer0.hidden: " + path_ +
                                 " has none of that name; it has t1, t2, t3, t4, t5, t6, t7, t8 "
                                 "and 1 more");
}

TEST_F(forward_input_test, rows_are_measured_against_the_served_model) {
  write({{"hidden", dtype::f32, {1, 4}}, {"logits", dtype::f32, {1, 2}}});
  const auto in = read();
  model_description model;
  model.hidden_size = 4;
  model.experts = 2;
  EXPECT_TRUE(check_against(*in, model));
  model.experts = 3;
  EXPECT_EQ(check_against(*in, model).error().text,
            "logits has shape [1, 2]; expected [tokens, 3]");
  model.hidden_size = 8;
  EXPECT_EQ(check_against(*in, model).error().text,
            "hidden has shape [1, 4]; expected [tokens, 8]");
}

TEST_F(forward_input_test, writes_output_in_hiddens_type_with_what_made_it) {
  forward_input in;
  in.tokens = 1;
  in.hidden_size = 2;
  in.hidden_type = dtype::bf16;
  forward_output out;
  out.rows = {1.0F, -2.0F};
  out.generation = generation_number(7);
  out.return_mode = "exact";
  forward_options o;
  o.out = path_;
  o.layer = 3;
  ASSERT_TRUE(write_forward_output(o, in, out));
  const auto file = tensor_file::open(path_);
  ASSERT_TRUE(file);
  const tensor_info* t = (*file)->header().find("output");
  ASSERT_NE(t, nullptr);
  EXPECT_EQ(t->type->element, dtype::bf16);
  const std::vector<std::pair<std::string, std::string>> wanted{
      {"epoch", "0"},           {"fingerprint", "0000000000000000"},
      {"generation", "7"},      {"layer", "3"},
      {"return_mode", "exact"}, {"status", "OK"}};
  EXPECT_EQ((*file)->header().metadata, wanted);
}

TEST_F(forward_input_test, its_own_file_is_never_written_over) {
  write({{"hidden", dtype::f32, {1, 4}}, {"logits", dtype::f32, {1, 2}}});
  const std::string link = path_ + ".link";
  std::filesystem::create_symlink(path_, link);
  for (const std::string& out : {path_, link}) {
    command_line line;
    line.forward.in = path_;
    line.forward.out = out;
    const auto done = run_forward(line, {});
    ASSERT_FALSE(done.has_value());
    EXPECT_EQ(done.error().text, "setting --out is " + out + "; allowed: another file than --in's");
  }
  std::filesystem::remove(link);
}

TEST_F(forward_input_test, a_tolerance_is_a_number) {
  command_line line;
  line.forward.check = true;
  line.forward.tolerance = std::numeric_limits<double>::quiet_NaN();
  const auto done = run_forward(line, {});
  ASSERT_FALSE(done.has_value());
  EXPECT_EQ(done.error().text, "setting --tolerance is nan; allowed: 0 or more");
}

TEST(deviation, counts_what_is_not_finite_as_wrong) {
  forward_input in;
  in.hidden_type = dtype::f32;
  forward_output out;
  in.wanted = {1.0F, 2.0F};
  out.rows = {1.0F, 2.5F};
  EXPECT_DOUBLE_EQ(deviation_of(in, out).largest, 0.5);
  out.rows = {1.0F, NAN};
  EXPECT_TRUE(std::isinf(deviation_of(in, out).relative()));
  in.wanted = {1.0F, NAN};
  EXPECT_DOUBLE_EQ(deviation_of(in, out).largest, 0.0);
  EXPECT_DOUBLE_EQ(deviation_of(in, out).scale, 1.0);
}

TEST(deviation, is_judged_by_the_scale_of_what_was_wanted) {
  forward_input in;
  in.hidden_type = dtype::f32;
  forward_output out;
  in.wanted = {-64.0F, 2.0F};
  out.rows = {-64.0F, 2.5F};
  EXPECT_DOUBLE_EQ(deviation_of(in, out).scale, 64.0);
  EXPECT_DOUBLE_EQ(deviation_of(in, out).relative(), 0.5 / 64.0);
  in.wanted = {0.0F, 0.0F};
  out.rows = {0.0F, 0.0F};
  EXPECT_DOUBLE_EQ(deviation_of(in, out).relative(), 0.0);
  out.rows = {0.0F, 1e-6F};
  EXPECT_GT(deviation_of(in, out).relative(), 1.0);
}

}  // namespace
}  // namespace moetier::cli

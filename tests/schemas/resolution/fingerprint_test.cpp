#include <set>

#include <gtest/gtest.h>

#include "schemas/resolution/reject_reason.hpp"
#include "tests/schemas/resolution/small_values.hpp"

namespace moetier::resolution {
namespace {

// Changes the field at one place of walk(), whatever its type.
class change_field final {
 public:
  explicit change_field(int place) : place_(place) {}

  template <class T>
  void operator()(std::string_view name, T& value) {
    if (at_++ != place_) return;
    name_ = name;
    change(value);
  }

  int fields() const noexcept { return at_; }
  const std::string& name() const noexcept { return name_; }

 private:
  static void change(bool& value) { value = !value; }
  template <std::unsigned_integral T>
  static void change(T& value) {
    ++value;
  }
  template <class E>
  requires std::is_enum_v<E>
  static void change(E& value) {
    value = static_cast<E>(static_cast<unsigned>(value) == 0 ? 1 : 0);
  }
  static void change(std::string& value) { value += "x"; }
  template <class T>
  static void change(std::optional<T>& value) {
    change(*value);
  }
  template <class T>
  static void change(std::vector<T>& values) {
    values.emplace_back();
  }
  static void change(std::map<std::string, std::string>& table) { table["another"] = ""; }

  int place_;
  int at_ = 0;
  std::string name_;
};

template <class T>
void expect_every_field_counts(const T& value) {
  change_field none(-1);
  T copy = value;
  walk(copy, none);
  std::set<std::string> texts{canonical_text(value)};
  for (int place = 0; place < none.fields(); ++place) {
    T changed = value;
    change_field change(place);
    walk(changed, change);
    EXPECT_NE(changed, value) << change.name();
    EXPECT_TRUE(texts.insert(canonical_text(changed)).second) << change.name();
  }
}

TEST(canonical_texts, change_with_every_field) {
  expect_every_field_counts(small_problem());
  expect_every_field_counts(small_deployment());
  expect_every_field_counts(cpu_machine());
}

TEST(canonical_texts, tell_unknown_from_absent_and_from_no) {
  environment unknown;
  environment absent;
  absent.driver = "";
  environment no;
  no.cpu_avx2 = false;
  EXPECT_NE(canonical_text(unknown), canonical_text(absent));
  EXPECT_NE(canonical_text(unknown), canonical_text(no));
}

TEST(canonical_texts, cannot_be_forged_by_a_text_that_looks_like_fields) {
  environment one;
  one.driver = "1\ncuda=1:2";
  environment two;
  two.driver = "1";
  two.cuda = "2";
  EXPECT_NE(canonical_text(one), canonical_text(two));
}

// A changed canonical form is a changed protocol: this number may only move on purpose.
TEST(canonical_texts, have_pinned_hashes) {
  EXPECT_EQ(fingerprint_of(environment{}),
            "a37397e2b54762310bfc79c0c104ca0dac1bf01db48d6906ebcea7f13074aa6d");
  EXPECT_EQ(hash_of(small_problem()), 10274101449877715155ULL);
}

TEST(reject_reasons, have_distinct_names_that_read_back) {
  std::set<std::string_view> names;
  for (unsigned i = 0; i < k_reject_reasons; ++i) {
    const auto why = static_cast<reject_reason>(i);
    reject_reason read{};
    EXPECT_TRUE(names.insert(reject_name(why)).second);
    ASSERT_TRUE(reject_of(reject_name(why), read)) << i;
    EXPECT_EQ(read, why);
  }
  EXPECT_EQ(reject_name(static_cast<reject_reason>(k_reject_reasons)), "");
  reject_reason untouched{};
  EXPECT_FALSE(reject_of("no_reason", untouched));
  EXPECT_EQ(reject_name(reject_reason::quarantined), "quarantined");
}

}  // namespace
}  // namespace moetier::resolution

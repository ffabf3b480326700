#include "actors/control/envelope.hpp"

#include <cstddef>
#include <type_traits>

#include <gtest/gtest.h>

#include "schemas/base/limits.hpp"
#include "schemas/control/codec.hpp"

namespace moetier::actors {
namespace {

template <class T>
struct element_of {
  using type = T;
};
template <class T, class A>
struct element_of<std::vector<T, A>> {
  using type = T;
};

// What the packaged CAF carries safely: integers other than bool, and raw bytes as unsigned char.
// An infinite float spins its I/O thread for ever; std::byte is coded element by element.
template <class T>
constexpr bool is_safe =
    std::is_integral_v<typename element_of<T>::type> && !std::is_same_v<T, bool> &&
    (std::is_same_v<T, typename element_of<T>::type> ||
     std::is_same_v<typename element_of<T>::type, unsigned char>);

// Visits the fields as CAF's serialisers do.
struct field_census {
  using result_type = int;
  int fields = 0;
  int unsafe = 0;

  template <class... Fields>
  int operator()(caf::meta::type_name_t, Fields&...) {
    fields = static_cast<int>(sizeof...(Fields));
    unsafe = (0 + ... + (is_safe<std::remove_cv_t<Fields>> ? 0 : 1));
    return 0;
  }
};

struct with_float {
  float x = 0;
  std::vector<std::byte> y;
};
template <class Inspector>
typename Inspector::result_type inspect(Inspector& f, with_float& e) {
  return f(caf::meta::type_name("with_float"), e.x, e.y);
}

TEST(envelope, holds_neither_floats_nor_std_byte) {
  field_census census;
  envelope e;
  inspect(census, e);
  EXPECT_EQ(census.fields, 2);
  EXPECT_EQ(census.unsafe, 0);
}

TEST(envelope, the_census_sees_what_is_unsafe) {
  field_census census;
  with_float e;
  inspect(census, e);
  EXPECT_EQ(census.unsafe, 2);
}

TEST(envelope, is_the_only_type_that_other_processes_can_send) {
  EXPECT_EQ(caf::id_block::moetier::end - caf::id_block::moetier::begin, 1);
}

TEST(envelope, every_frame_of_a_message_fits_it) {
  control::prepare large;
  large.placement.assign(300'000, 7);
  for (const control::frame& f : control::encode(large)) {
    EXPECT_LE(f.size(), k_envelope_bytes_max);
  }
}

}  // namespace
}  // namespace moetier::actors

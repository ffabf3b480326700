#pragma once
// What this build is, behind one function, so that a new commit recompiles one file. Thread: any.

#include <string_view>

namespace moetier {

struct build_info {
  std::string_view version, commit, compiler, build_type, cuda, caf, capnp, ucx;
};

const build_info& this_build() noexcept;

}  // namespace moetier

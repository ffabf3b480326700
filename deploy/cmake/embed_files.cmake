# Writes a C++ source that holds files as text, in the order given: run by moetier_embed at build
# time. OUTPUT: the source; HEADER declares the struct (name, text) and the function FUNCTION in
# NAMESPACE; FILES: list. One raw string a file, within what every compiler takes as one literal.
set(rows "")
foreach(file IN LISTS FILES)
  get_filename_component(name "${file}" NAME)
  file(READ "${file}" text)
  string(FIND "${text}" ")embed\"" clash)
  string(LENGTH "${text}" length)
  if(NOT clash EQUAL -1 OR length GREATER 60000)
    message(FATAL_ERROR "${file} cannot be embedded: it is over 60000 bytes or holds )embed\"")
  endif()
  string(APPEND rows "    {\"${name}\", R\"embed(${text})embed\"},\n")
endforeach()
file(WRITE "${OUTPUT}" "#include \"${HEADER}\"

namespace ${NAMESPACE} {
namespace {
constexpr embedded_file k_files[] = {
${rows}};
}  // namespace
std::span<const embedded_file> ${FUNCTION}() noexcept { return k_files; }
}  // namespace ${NAMESPACE}
")

// Opens a library of Rove's own that is loaded only when it is needed: librove-jit.so, librove-ucx.so.
#pragma once

#include <string_view>

#include "base/result.hpp"

namespace rove {

// The handle for dlsym. The library is looked for beside this code, in ../lib, in the build tree's lib, and then where the
// system looks. Its names stay out of other libraries' way, and it is never closed. unsupported: there is none; the message is
// the loader's.
[[nodiscard]] Result<void*> open_own_library(std::string_view file_name);

}  // namespace rove

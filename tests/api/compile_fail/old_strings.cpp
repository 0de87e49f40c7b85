// expect: compile without -D_GLIBCXX_USE_CXX11_ABI=0
#define _GLIBCXX_USE_CXX11_ABI 0
#include "common.hpp"

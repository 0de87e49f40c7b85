// SharedObject: one that a program lets functions use by its name (Node::share).
#pragma once

#include <string>

namespace rove {

struct SharedObject {
    void* object;
    std::string type;
};

}  // namespace rove

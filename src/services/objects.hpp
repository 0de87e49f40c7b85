// Objects: those that a program lets functions use by their names (Node::share, Here::object). An object is kept by its program; here are
// its address and its type, by which a function of another build is refused.
//
// Threads: any.
#pragma once

#include <functional>
#include <map>
#include <string>
#include <string_view>

#include "base/mutex.hpp"
#include "base/result.hpp"

namespace rove {

class Objects {
public:
    // `node` names the node, for messages.
    explicit Objects(std::function<std::string()> node) : node_(std::move(node)) {}

    // invalid: the name means an object already.
    [[nodiscard]] Status share(const std::string& name, void* object, std::string_view type);
    void unshare(const std::string& name);
    // The object of that name. `type` is compared letter by letter with what was given to share(). invalid: there is no such object, or
    // it has another type.
    [[nodiscard]] Result<void*> find(std::string_view name, std::string_view type) const;

private:
    struct Object {
        void* address;
        std::string type;
    };
    const std::function<std::string()> node_;
    mutable Mutex mutex_;
    std::map<std::string, Object, std::less<>> objects_ GUARDED_BY(mutex_);
};

}  // namespace rove

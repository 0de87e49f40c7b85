// Objects: those that a program shares with functions under a name (Node::share, Here::object). The program owns the object; this table has
// its address and its type, with which a function whose type differs is refused.
//
// Threads: any. `node` is called under its lock.
//
// Invariant: a name means the object that was shared first under it, until unshare().
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
    // The object of that name. `type` is compared letter by letter with the one given to share(). invalid: there is no such object, or it
    // has another type.
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

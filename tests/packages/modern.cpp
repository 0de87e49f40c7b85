// C++ with all that needs an image's metadata: constructors and destructors, virtual functions, exceptions, containers.
#include <rove/rove.h>

#include <algorithm>
#include <map>
#include <memory>
#include <stdexcept>
#include <string>
#include <vector>

namespace {

struct Shape {
    virtual ~Shape() = default;
    virtual int sides() const = 0;
};
struct Triangle : Shape {
    int sides() const override { return 3; }
};
struct Square : Shape {
    int sides() const override { return 4; }
};

struct Registry {
    std::map<std::string, std::unique_ptr<Shape>> shapes;
    Registry() {
        shapes["triangle"] = std::make_unique<Triangle>();
        shapes["square"] = std::make_unique<Square>();
    }
};
Registry registry;  // constructed on arrival

}  // namespace

ROVE_ENTRY void sides(rove_here* here, const void* payload, size_t size) {
    const std::string name(static_cast<const char*>(payload), size);
    try {
        const int sides = registry.shapes.at(name)->sides();
        rove_reply(here, &sides, sizeof sides);
    } catch (const std::out_of_range&) {
        rove_fail(here, ("no shape " + name).c_str());
    }
}

ROVE_ENTRY void sorted(rove_here* here, const void* payload, size_t size) {
    std::string text(static_cast<const char*>(payload), size);
    std::sort(text.begin(), text.end());
    rove_reply(here, text.data(), text.size());
}

ROVE_ENTRY void leak(rove_here*, const void*, size_t) {
    throw std::runtime_error("straight through the roof");
}

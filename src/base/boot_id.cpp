#include "base/boot_id.hpp"

#include <fstream>

#include "base/made_once.hpp"

namespace rove {

const std::string& boot_id() {
    static constinit MadeOnce<const std::string> id;
    return id.get([] {
        std::ifstream file("/proc/sys/kernel/random/boot_id");
        std::string text;
        std::getline(file, text);
        text.resize(kBootIdBytes);
        return new const std::string(std::move(text));
    });
}

}  // namespace rove

#include "code/package_code.hpp"

#include <utility>

namespace rove::code {

bool PackageCode::has_stored(Forms form) const {
    const auto slice = store->slice_index(host_triple(), form);
    return slice && store->stored_slice(*slice) != nullptr;
}

void PackageCode::publish() noexcept {
    for (const auto& function : functions) {
        const bool is_compiled = module_runs(*function);
        const EntryPoint from_image = image_runs(*function) ? function->image : nullptr;
        const EntryPoint best = is_compiled ? function->compiled : from_image;
        const RanAs ran = is_compiled ? RanAs::bitcode : RanAs::image;
        function->ran.store(resident ? RanAs::resident : ran, std::memory_order_relaxed);
        function->target.store(best, std::memory_order_seq_cst);
    }
}

void PackageCode::release_code() noexcept {
    image_lacks.clear();
    module_lacks.clear();
    module.reset();
    image.reset();
    exported.clear();
}

bool PackageCode::end() {
    if (destructors.awaits_threads()) return false;
    if (std::exchange(constructed, false) && image) image->destruct();
    destructors.run();
    return true;
}

}  // namespace rove::code

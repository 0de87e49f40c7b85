#include "code/uses.hpp"

#include <linux/membarrier.h>
#include <sys/syscall.h>
#include <unistd.h>

namespace rove::code {

// Expedited if the process has registered (CodePool::prepare_process), otherwise the slow way, which always works.
void Uses::fence_others() const {
    if (!evictor_fences_) return;
    if (syscall(SYS_membarrier, MEMBARRIER_CMD_PRIVATE_EXPEDITED_SYNC_CORE, 0, 0) == 0) return;
    (void)syscall(SYS_membarrier, MEMBARRIER_CMD_GLOBAL, 0, 0);
}

bool Uses::can_fence_all() {
    const long commands = syscall(SYS_membarrier, MEMBARRIER_CMD_QUERY, 0, 0);
    return commands > 0 && (commands & MEMBARRIER_CMD_GLOBAL) != 0;
}

bool Uses::needs_slices(const PackageCode& package) const {
    return package.loading || (package.is_to_be_compiled() && !package.waits_in_vain()) ||
           (!package.loaded() && is_running(package));
}

// An image whose bitcode only waits for the compiler may be evicted: the bitcode is queued again with the image.
bool Uses::is_used(const PackageCode& package) const {
    return (package.is_under_way() && !package.waits_in_vain()) || package.compile == PackageCode::Compile::begun ||
           is_running(package);
}

bool Uses::is_busy(const PackageCode& package) const {
    return package.awaited() || is_used(package);
}

}  // namespace rove::code

#include "base/own_code_pages.hpp"

#include <link.h>
#include <sys/mman.h>

#include <cstdint>

#include "arch/arch.hpp"
#include "base/fork.hpp"
#include "base/made_once.hpp"

namespace rove {

#ifdef MADV_POPULATE_READ
namespace {

void touch_once() {
    const NoForkMeanwhile whole;  // the loader has a lock
    (void)dl_iterate_phdr(
        [](dl_phdr_info* module, std::size_t, void* inside) {
            const std::uintptr_t page = arch::page_bytes();
            const auto wanted = reinterpret_cast<std::uintptr_t>(inside);
            bool found = false;
            for (int i = 0; i < module->dlpi_phnum; ++i) {
                const ElfW(Phdr)& part = module->dlpi_phdr[i];
                const std::uintptr_t begin = module->dlpi_addr + part.p_vaddr;
                found = found || (part.p_type == PT_LOAD && wanted >= begin && wanted < begin + part.p_memsz);
            }
            if (!found) return 0;
            for (int i = 0; i < module->dlpi_phnum; ++i) {
                const ElfW(Phdr)& part = module->dlpi_phdr[i];
                if (part.p_type != PT_LOAD || (part.p_flags & PF_X) == 0) continue;
                const std::uintptr_t begin = (module->dlpi_addr + part.p_vaddr) / page * page;
                const std::uintptr_t end = module->dlpi_addr + part.p_vaddr + part.p_filesz;
                (void)madvise(reinterpret_cast<void*>(begin), end - begin,
                              MADV_POPULATE_READ);  // NOLINT(performance-no-int-to-ptr)
            }
            return 1;
        },
        reinterpret_cast<void*>(&touch_own_code_pages));
}

}  // namespace
#endif

void touch_own_code_pages() {
#ifdef MADV_POPULATE_READ
    static constinit MadeOnce<const bool> touched;
    (void)touched.get([] {
        touch_once();
        return new const bool(true);
    });
#endif
}

}  // namespace rove

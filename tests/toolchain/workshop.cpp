#include "workshop.hpp"

namespace rove::toolchain {

std::string entry(std::string_view name, std::string_view body) {
    return fmt::format(
        "ROVE_ENTRY void {}(rove_here *here, const void *payload, size_t size) {{ (void)payload; (void)size; {} }}\n",
        name, body);
}

void Workshop::SetUp() {
    auto folder = TemporaryFolder::make();
    ASSERT_TRUE(folder) << folder.error().what();
    folder_ = std::move(*folder);
}

std::filesystem::path Workshop::write(const std::string& name, std::string_view text) {
    const std::filesystem::path path = folder() / name;
    std::filesystem::create_directories(path.parent_path());
    const Status written = write_file(path, as_bytes(text));
    EXPECT_TRUE(written);
    return path;
}

Result<std::shared_ptr<PackageStore>> Workshop::build_of(BuildOptions options) {
    if (options.output.empty()) options.output = folder() / "out.rove";
    options.warn = [this](std::string_view line) { warnings_.emplace_back(line); };
    ROVE_CHECK(build(options));
    return PackageStore::open(options.output);
}

Result<std::shared_ptr<PackageStore>> Workshop::build_of(const std::string& name, std::string_view text) {
    return build_of(BuildOptions{.source = write(name, std::string("#include <rove/rove.h>\n").append(text))});
}

Ran Workshop::run_command(const std::vector<std::string>& words) {
    auto ran = run(words, words.front());
    EXPECT_TRUE(ran) << ran.error().what();
    return ran ? std::move(*ran) : Ran{};
}

wire::Image image_of(const PackageStore& package, std::string_view triple) {
    const auto index = package.slice_index(triple, Forms::image);
    EXPECT_TRUE(index) << "no image for " << triple;
    if (!index) return {};
    const auto raw = package.raw_slice(*index);
    EXPECT_TRUE(raw) << raw.error().what();
    if (!raw) return {};
    auto image = wire::decode_image(*raw, package.manifest().imports.size());
    EXPECT_TRUE(image) << image.error().what();
    return image ? std::move(*image) : wire::Image{};
}

bool mentions(std::string_view text, std::string_view what) {
    return text.find(what) != std::string_view::npos;
}

}  // namespace rove::toolchain

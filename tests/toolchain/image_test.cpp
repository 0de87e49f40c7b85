// Images of objects that rove build would not make.
#include "toolchain/image.hpp"

#include "workshop.hpp"

namespace rove::toolchain {
namespace {

class ImageTest : public Workshop {
protected:
    // Of an object whose one function counts in a static of that visibility.
    Result<wire::Image> image_of_counter(const std::string& visibility) {
        return image_of(visibility, "__attribute__((visibility(\"" + visibility +
                                        "\"))) int counter = 1;\nint go(void) { return ++counter; }\n");
    }
    // Of the object of that text.
    Result<wire::Image> image_of(const std::string& name, const std::string& text,
                                 const std::vector<std::string>& imports = {}) {
        const std::filesystem::path source = write(name + ".c", text);
        const std::filesystem::path object = folder() / (name + ".o");
        const Ran compiled =
            run_command({"clang-19", "-O2", "-fPIC", "-fdata-sections", "-c", source.string(), "-o", object.string()});
        EXPECT_EQ(compiled.status, 0) << compiled.out;
        ROVE_TRY(ByteBuffer bytes, read_file(object));
        ROVE_TRY(bitcode::Compiler * compiler, bitcode::compiler());
        return link_image(
            *compiler,
            {.object = std::move(bytes), .folder = folder(), .entries = {"go"}, .exports = {}, .imports = imports});
    }
};

// The loader puts statics anywhere, so code may not count on their distance.
TEST_F(ImageTest, CodeThatReachesStaticsByTheirDistanceMakesNone) {
    const auto by_address = image_of_counter("default");
    ASSERT_TRUE(by_address) << by_address.error().message();
    EXPECT_EQ(by_address->data_bytes, 4U);
    const auto by_distance = image_of_counter("hidden");
    ASSERT_FALSE(by_distance);
    EXPECT_EQ(by_distance.error().code(), ErrorCode::unsupported);
    EXPECT_TRUE(mentions(by_distance.error().message(), "by their distance")) << by_distance.error().message();
}

// prepare() refuses those that are known. The address would be of the file that the linker made, of which an image has a part.
TEST_F(ImageTest, ANameThatTheLinkerMakesUpMakesNone) {
    const auto none = image_of(
        "header", "extern const char __ehdr_start[];\nint go(void) { return __ehdr_start[0]; }\n", {"__ehdr_start"});
    ASSERT_FALSE(none);
    EXPECT_EQ(none.error().code(), ErrorCode::unsupported);
    EXPECT_TRUE(mentions(none.error().message(), "the linker gives '__ehdr_start' a meaning of its own"))
        << none.error().message();
}

}  // namespace
}  // namespace rove::toolchain

// { dg-do run }
// std::regex: many templates, virtual functions, locale facets and an exception.
#include <cstdlib>
#include <regex>
#include <string>

int main() {
    const std::string text = "one=1, two=22, three=333";
    const std::regex pair("(\\w+)=(\\d+)");
    int sum = 0;
    for (std::sregex_iterator match(text.begin(), text.end(), pair), end; match != end; ++match)
        sum += std::stoi((*match)[2]);
    if (sum != 356) abort();
    try {
        std::regex wrong("(");
        abort();
    } catch (const std::regex_error&) {
    }
}

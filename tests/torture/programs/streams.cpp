// { dg-do run }
// Streams of the standard library, with their locales' facets.
#include <cstdlib>
#include <iomanip>
#include <iostream>
#include <sstream>

int main() {
    std::ostringstream out;
    out << std::hex << 255 << ' ' << std::setw(6) << std::setfill('.') << std::fixed << std::setprecision(2) << 3.14159;
    if (out.str() != "ff ..3.14") abort();
    std::istringstream in("12 x 3.5");
    int number = 0;
    char letter = 0;
    double real = 0;
    if (!(in >> number >> letter >> real) || number != 12 || letter != 'x' || real != 3.5) abort();
    std::cout << std::flush;
    if (!std::cout) abort();
}

// What the static libraries of api_linked offer.
#pragma once

namespace linked {

int embedded(int x);
int left(int x);

}  // namespace linked

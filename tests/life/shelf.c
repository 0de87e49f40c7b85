// An interface that work links to: built with several LABELs, which replace one another.
int life_shelf_label(void) {
    return LABEL;
}

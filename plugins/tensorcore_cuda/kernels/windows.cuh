// Windows over up to three dims: sizes of the input and counts of windows, and how a window lies.
struct windows {
    int sizes[3], counts[3], kernel[3], stride[3], padding[3], dilation[3];
};

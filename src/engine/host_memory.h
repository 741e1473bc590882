// How the process treats memory it frees.
#pragma once

namespace cohort::engine {

// Keeps freed blocks of up to 32 MiB for the next step instead of giving them back to the kernel.
// A training step frees and allocates the same megabytes again and again; returned each time,
// every page must be faulted in and zeroed anew, which was a quarter of a ResNet-20 step. Call once
// at the start of main(). Without glibc it does nothing.
void keep_freed_memory();

}  // namespace cohort::engine

/* Included before every source of QuickJS.
 *
 * On WASI, QuickJS has no limit of its stack. Ours must have one, because a stack overflow of
 * WebAssembly is a trap and not an error that a program can catch. So QuickJS is told that this is
 * not WASI, after the headers that insist on it. */
#include <wasi/api.h>
#undef __wasi__
/* Has `malloc_usable_size`, as glibc does. */
#define __GLIBC__ 2

/* QuickJS measures its stack in linear memory. The stack that overflows is the one of WebAssembly,
 * which nothing can measure. Functions use both in different proportions: at the host's limit of
 * 1 MiB, calls of JavaScript have used 300 KiB of linear memory, but the parser only 75 KiB, and
 * conversions to JSON 50 KiB. The second argument of the check is what a function will use in
 * addition, and tells these kinds apart: the parser passes 1000, and C that calls itself passes 0.
 * The limit itself is `STACK_BYTES_MAX` in `src/engine.rs`. */
#define js_check_stack_overflow(rt, more) js_check_stack_overflow(rt, MORE_##more)
#define MORE_0 (216 << 10)
#define MORE_1000 (200 << 10)
#define MORE_alloca_size alloca_size
#define MORE_stack_size stack_size
#define MORE_sizeof sizeof
/* In the definition of the function. */
#define MORE_size_t size_t

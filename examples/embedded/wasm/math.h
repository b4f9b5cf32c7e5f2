/* math.h - what an exported file needs of it, as instructions of WebAssembly. */
#define INFINITY __builtin_inff()
#define NAN __builtin_nanf("")
#define fabsf __builtin_fabsf
#define sqrtf __builtin_sqrtf
#define copysignf __builtin_copysignf

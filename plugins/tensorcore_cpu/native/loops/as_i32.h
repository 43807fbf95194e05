/* What a template of loops is written in, for integers of 32 bits; loops/rows.h says what the names are. */
#undef REAL
#undef WIDE
#undef INT
#undef F
#undef V
#undef V_U
#undef VI
#undef LANES
#undef ZIP
#define REAL int32_t
#define WIDE int32_t
#define INT int32_t
#define F(name) name##_i32
#define V vi
#define V_U vi_u
#define VI vi
#define LANES LANES_F32
#define ZIP ZIP_FLOAT

/* What a template of loops is written in, for integers of 64 bits; loops/rows.h says what the names are. */
#undef REAL
#undef WIDE
#undef INT
#undef F
#undef V
#undef V_U
#undef VI
#undef LANES
#undef ZIP
#define REAL int64_t
#define WIDE int64_t
#define INT int64_t
#define F(name) name##_i64
#define V vl
#define V_U vl_u
#define VI vl
#define LANES LANES_F64
#define ZIP ZIP_DOUBLE

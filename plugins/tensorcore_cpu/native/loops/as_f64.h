/* What a template of loops is written in, for double; loops/rows.h says what the names are. */
#undef REAL
#undef WIDE
#undef INT
#undef F
#undef VEC
#undef VEC_U
#undef LANES
#define REAL double
#define WIDE long double
#define INT int64_t
#define F(name) name##_f64
#define VEC vd
#define VEC_U vd_u
#define LANES LANES_F64

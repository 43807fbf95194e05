/* What a template of loops is written in, for double; loops/rows.h says what the names are. */
#undef REAL
#undef WIDE
#undef INT
#undef F
#undef V
#undef V_U
#undef VI
#undef LANES
#undef ZIP
#define REAL double
#define WIDE long double
#define INT int64_t
#define F(name) name##_f64
#define V vd
#define V_U vd_u
#define VI vl
#define LANES LANES_F64
#define ZIP ZIP_DOUBLE

/* What a template of loops is written in, for float; loops/rows.h says what the names are. */
#undef REAL
#undef WIDE
#undef INT
#undef F
#undef V
#undef V_U
#undef VI
#undef LANES
#undef ZIP
#define REAL float
#define WIDE double
#define INT int32_t
#define F(name) name##_f32
#define V vf
#define V_U vf_u
#define VI vi
#define LANES LANES_F32
#define ZIP ZIP_FLOAT

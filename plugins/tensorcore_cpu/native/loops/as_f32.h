/* What a template of loops is written in, for float; loops/rows.h says what the names are. */
#undef REAL
#undef WIDE
#undef INT
#undef F
#undef VEC
#undef VEC_U
#undef LANES
#define REAL float
#define WIDE double
#define INT int32_t
#define F(name) name##_f32
#define VEC vf
#define VEC_U vf_u
#define LANES LANES_F32

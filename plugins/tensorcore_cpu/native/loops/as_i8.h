/* What a template of loops without vectors of its own is written in, for integers of 8 bits; loops/rows.h says what the names are. */
#undef REAL
#undef WIDE
#undef INT
#undef F
#undef V
#undef V_U
#undef VI
#undef LANES
#undef ZIP
#define REAL int8_t
#define WIDE int8_t
#define INT int8_t
#define F(name) name##_i8

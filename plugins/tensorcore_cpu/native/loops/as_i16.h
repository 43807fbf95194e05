/* What a template of loops without vectors of its own is written in, for integers of 16 bits; loops/rows.h says what the names are. */
#undef REAL
#undef WIDE
#undef INT
#undef F
#undef V
#undef V_U
#undef VI
#undef LANES
#undef ZIP
#define REAL int16_t
#define WIDE int16_t
#define INT int16_t
#define F(name) name##_i16

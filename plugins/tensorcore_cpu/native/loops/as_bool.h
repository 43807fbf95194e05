/* What a template of loops without vectors of its own is written in, for bools; loops/rows.h says what the names are. */
#undef REAL
#undef WIDE
#undef INT
#undef F
#undef V
#undef V_U
#undef VI
#undef LANES
#undef ZIP
#define REAL bool
#define WIDE bool
#define INT bool
#define F(name) name##_bool

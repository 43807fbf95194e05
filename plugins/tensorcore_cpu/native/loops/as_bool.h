/* What a template of loops without vectors of its own is written in, for bools, whose true ones are any bytes but 0; loops/rows.h
   says what the names are. */
#undef REAL
#undef WIDE
#undef INT
#undef F
#undef V
#undef V_U
#undef VI
#undef LANES
#undef ZIP
#define REAL uint8_t
#define WIDE uint8_t
#define INT uint8_t
#define F(name) name##_bool

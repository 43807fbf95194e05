#pragma once  // in device.h

// The exception type of the project is part of its public API.
#pragma once

#include "fusec/error.h"

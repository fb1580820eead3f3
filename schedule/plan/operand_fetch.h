// Predicts how a kernel fetches what it reads, which a roof leaves out: factors of products in pieces or one by one,
// and whether neighbours in memory are read together.
#pragma once

namespace fusec {

class KernelPlanner;

// The seconds of a launch with that counted; 0 if there is nothing of it.
double seconds_of_form(const KernelPlanner& planner);

}  // namespace fusec

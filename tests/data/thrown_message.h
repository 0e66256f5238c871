// The message of the exception that a call must throw.
#pragma once

#include <string>

#include <gtest/gtest.h>

namespace assay::data {

template <class Expected, class Call>
std::string thrown_message(const Call& call) {
  try {
    call();
  } catch (const Expected& error) {
    return error.what();
  }
  ADD_FAILURE() << "nothing was thrown";
  return "";
}

}  // namespace assay::data

// See README.md of this folder.
#pragma once

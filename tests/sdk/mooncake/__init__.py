# SPDX-License-Identifier: Apache-2.0
"""Not the SDK: see store.py."""

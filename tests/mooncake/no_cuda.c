/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The functions of CUDA's driver that Mooncake's client library was linked against, on a machine without
 * one: each answers that there is no device.
 */
#define NO_DEVICE 100

#define FUNCTIONS(X) \
	X(cuCtxGetDevice) X(cuCtxSetCurrent) X(cuDeviceGet) X(cuDeviceGetAttribute) \
	X(cuDevicePrimaryCtxRelease_v2) X(cuDevicePrimaryCtxRetain) X(cuGetErrorName) X(cuGetErrorString) \
	X(cuInit) X(cuMemAddressFree) X(cuMemAddressReserve) X(cuMemCreate) X(cuMemExportToShareableHandle) \
	X(cuMemGetAddressRange_v2) X(cuMemGetAllocationGranularity) X(cuMemGetHandleForAddressRange) \
	X(cuMemImportFromShareableHandle) X(cuMemMap) X(cuMemRelease) X(cuMemRetainAllocationHandle) \
	X(cuMemSetAccess) X(cuMemUnmap) X(cuPointerGetAttribute) X(cuPointerSetAttribute)

#define FUNCTION(name) \
	__attribute__((visibility("default"))) int name(void); \
	int name(void) \
	{ \
		return NO_DEVICE; \
	}

FUNCTIONS(FUNCTION)

/**
 * Flags of each Node process of the world. No signal opens an inspector, and the young generation is small: these
 * processes hold little data, and Node's default lets each of them use tens of megabytes that it does not need.
 */
export const nodeFlags = ['--disable-sigusr1', '--max-semi-space-size=4']

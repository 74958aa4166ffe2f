/**
 * Of each Node process of the world. No signal opens an inspector, and the young generation stays small: these
 * processes hold little, and Node's default lets each of them keep tens of megabytes that it does not need.
 */
export const nodeFlags = ['--disable-sigusr1', '--max-semi-space-size=4']

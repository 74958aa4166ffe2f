/** The port for business time. Leases use the database's clock, because leases are compared across machines. */
export type Clock = { now(): Date }

export const systemClock: Clock = { now: () => new Date() }

export const later = (from: Date, ms: number): Date => new Date(from.getTime() + ms)

/** Reads a clock that is never set, for durations such as the age of a cached value. */
export const monotonicMs = (): number => performance.now()

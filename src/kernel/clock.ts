/** Business time. Leases use the database's clock instead, since they are compared across machines. */
export type Clock = { now(): Date }

export const systemClock: Clock = { now: () => new Date() }

export const later = (from: Date, ms: number): Date => new Date(from.getTime() + ms)

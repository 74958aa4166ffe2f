/** The most keys of a user, and the longest life of one. */
export const keysMax = 10
export const keyDaysMax = 90

/** Returns the client id under which a key of a person counts as a connected app. */
export const keyClientId = (keyId: string): string => `key:${keyId}`

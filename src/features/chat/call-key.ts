/**
 * The name of the idempotency key of a call. A turn that starts it and a user who accepts it use the same one, so that it
 * runs once, however both race.
 */
export const keyOfCall = (chatId: string, callId: string): string => `${chatId} ${callId}`

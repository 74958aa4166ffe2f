/** Repetitions of one message have the same `key`, so that a service delivers it once. */
export type EmailMessage = { to: string; subject: string; text: string; key?: string }

/** Throws a fault if the message could not be handed over. */
export type SendEmail = (message: EmailMessage) => Promise<void>

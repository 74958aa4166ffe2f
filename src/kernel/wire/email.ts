/** A message to an address. `key`: repetitions of one message have the same, so that a service delivers it once. */
export type EmailMessage = { to: string; subject: string; text: string; key?: string }

/** Throws a fault where the message could not be handed over. */
export type SendEmail = (message: EmailMessage) => Promise<void>

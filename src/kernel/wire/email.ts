/** Repetitions of one message have the same `key`, so that a service delivers it once. */
export type EmailMessage = { to: string; subject: string; text: string; key?: string }

export type SendEmail = (message: EmailMessage) => Promise<void>

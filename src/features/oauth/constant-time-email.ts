import { setTimeout } from 'node:timers/promises'
import type { SendEmail } from '#kernel/wire/email.ts'

type PacedEmail = {
  send: SendEmail
  /**
   * Waits as long as the last message took, and fails if that message failed. So a page does not reveal that no mail
   * was sent.
   */
  holdBack(): Promise<void>
}

export function createPacedEmail(sendEmail: SendEmail): PacedEmail {
  let last: { ms: number; error?: unknown } = { ms: 0 }
  return {
    async send(message) {
      const startedMs = performance.now()
      const ms = () => performance.now() - startedMs
      try {
        await sendEmail(message)
        last = { ms: ms() }
      } catch (error) {
        last = { ms: ms(), error }
        throw error
      }
    },
    async holdBack() {
      await setTimeout(last.ms)
      if (last.error !== undefined) throw last.error
    },
  }
}

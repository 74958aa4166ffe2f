import { setTimeout as pause } from 'node:timers/promises'
import { Fault } from '#kernel/contract/fault.ts'
import type { Log } from '#kernel/log.ts'
import type { EmailMessage } from '#kernel/wire/email.ts'
import type { Net } from '#kernel/wire/upstream-http.ts'

/** Delivers messages through a service: `POST {to, subject, text}`. */

type Options = {
  url: string
  token: string | undefined
  net: Net
  log: Log
  /** Makes the key of a message that has none; the service recognises a repeated message by it. */
  newKey: () => string
}

const timeoutMs = 5_000
const pausesMs = [250, 1_000]
const replyBytesMax = 64 * 1_024

/** Sends until the service accepts the message, or throws `unavailable` after the last attempt. */
export function createEmailService({ url, token, net, log, newKey }: Options) {
  const attempt = async ({ to, subject, text }: EmailMessage, key: string): Promise<number | undefined> => {
    const request = {
      url,
      method: 'POST',
      headers: {
        'content-type': 'application/json',
        'idempotency-key': key,
        ...(token !== undefined && { authorization: `Bearer ${token}` }),
      },
      body: JSON.stringify({ to, subject, text }),
      timeoutMs,
      maxBytes: replyBytesMax,
    }
    return net.fetch(request).then(
      ({ status }) => status,
      (error: unknown) => {
        if (error instanceof Fault) return undefined
        throw error
      },
    )
  }
  return async (message: EmailMessage): Promise<void> => {
    const key = message.key ?? newKey()
    for (const pauseMs of [...pausesMs, undefined]) {
      const status = await attempt(message, key)
      if (status !== undefined && status < 300) return
      const isFinal = status !== undefined && status < 500 && status !== 429
      if (pauseMs === undefined || isFinal) {
        log.error({ status }, 'the email service did not accept a message')
        throw new Fault('unavailable', 'The message could not be sent; try again in a moment')
      }
      await pause(pauseMs)
    }
  }
}

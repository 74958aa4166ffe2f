import type { Clock } from '#kernel/clock.ts'
import type { GuardedFetch } from '#upstreams/guarded-fetch/guarded-fetch.ts'
import type { Message } from './message.ts'
import { signatureHeader } from './signature.ts'

export type Attempt = {
  /** The HTTP status of the answer; null if no answer came. */
  status: number | null
  /** Why the attempt failed; null if the address accepted the message. */
  error: string | null
  durationMs: number
  retryAfterMs: number
}
export type PostDeps = { http: Pick<GuardedFetch, 'fetch'>; clock: Clock }
type Target = { url: string; secrets: readonly Uint8Array[]; message: Message; signal?: AbortSignal }

export const attemptTimeoutMs = 10_000
/** The content of an answer is ignored, but reading a little of it allows the connection to be reused. */
const answerBytesMax = 16 * 1024
const answerMsMax = 500

export async function postMessage({ http, clock }: PostDeps, target: Target): Promise<Attempt> {
  const { url, secrets, message, signal } = target
  const startedMs = performance.now()
  const timestampSeconds = Math.floor(clock.now().getTime() / 1_000)
  const duration = () => Math.round(performance.now() - startedMs)
  try {
    const answer = await http.fetch(url, {
      method: 'POST',
      headers: {
        'content-type': 'application/json',
        'accept-encoding': 'identity',
        'user-agent': 'Portico-Webhooks/1',
        'webhook-id': message.id,
        'webhook-timestamp': String(timestampSeconds),
        'webhook-signature': signatureHeader(secrets, { ...message, timestampSeconds }),
      },
      body: message.body,
      ...(signal && { signal }),
    })
    const durationMs = duration()
    await discard(answer.body)
    const isAccepted = answer.status >= 200 && answer.status < 300
    return {
      status: answer.status,
      error: isAccepted ? null : `the address answered ${answer.status}`,
      durationMs,
      retryAfterMs: retryAfterMs(answer.headers.get('retry-after')),
    }
  } catch (error) {
    return { status: null, error: reasonOf(error), durationMs: duration(), retryAfterMs: 0 }
  }
}

const retryAfterMs = (text: string | null): number =>
  text !== null && /^\d{1,6}$/.test(text) ? Number(text) * 1_000 : 0

/** Drops the answer, and cuts off a long or slow one. */
async function discard(body: ReadableStream<Uint8Array> | null): Promise<void> {
  if (!body) return
  const reader = body.getReader()
  const timer = setTimeout(() => void reader.cancel().catch(() => {}), answerMsMax)
  try {
    for (let bytes = 0; bytes < answerBytesMax; ) {
      const { done, value } = await reader.read()
      if (done) return
      bytes += value.length
    }
    await reader.cancel()
  } catch {
    // The answer broke off, but its status is known.
  } finally {
    clearTimeout(timer)
  }
}

/** Returns the kind of a failure in words, but never an IP address that a host name resolves to. */
function reasonOf(error: unknown): string {
  const { name, cause } = error as { name?: string; cause?: { name?: string; code?: string } }
  if (name === 'TimeoutError') return `no answer within ${attemptTimeoutMs / 1_000} seconds`
  const inner = cause ?? (error as { name?: string; code?: string })
  if (inner.name === 'RefusedAddress') return 'the address is not public'
  const { code } = inner
  return code !== undefined && /^[A-Z0-9_]{2,60}$/.test(code)
    ? `the connection failed: ${code}`
    : 'the connection failed'
}

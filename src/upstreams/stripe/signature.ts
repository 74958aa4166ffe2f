import { createHmac, timingSafeEqual } from 'node:crypto'

/** Checks the signature of an event over the bytes that arrived, before anything reads them. */

/** A signature is valid for this long before and after its time, so that clocks may differ. */
const toleranceSeconds = 300
const headerCharsMax = 4_096

export type SignedBytes = {
  bytes: Uint8Array
  header: string | undefined
  /** Several secrets are valid while one replaces another. */
  secrets: readonly string[]
  now: Date
}

type Header = { time: string; signatures: Buffer[] }

/** Returns the time and the signatures of a header; undefined if it has none, or is not of about now. */
function readHeader(header: string | undefined, now: Date): Header | undefined {
  if (header === undefined || header.length > headerCharsMax) return undefined
  const parts = header.split(',').map((part) => part.split('='))
  const [time, ...furtherTimes] = parts.filter(([name]) => name?.trim() === 't').map(([, value]) => value)
  if (time === undefined || furtherTimes.length > 0 || !/^\d{1,12}$/.test(time)) return undefined
  if (Math.abs(now.getTime() / 1_000 - Number(time)) > toleranceSeconds) return undefined
  const signatures = parts
    .filter(([name, value]) => name?.trim() === 'v1' && /^[0-9a-f]{64}$/.test(value ?? ''))
    .map(([, value]) => Buffer.from(value ?? '', 'hex'))
  return signatures.length === 0 ? undefined : { time, signatures }
}

/** Whether a header has a signature of about now, which costs nothing to see. */
export const isTimely = (header: string | undefined, now: Date): boolean =>
  readHeader(header, now) !== undefined

export function hasValidSignature({ bytes, header, secrets, now }: SignedBytes): boolean {
  const given = readHeader(header, now)
  if (!given) return false
  return secrets.some((secret) => {
    const expected = createHmac('sha256', secret).update(`${given.time}.`).update(bytes).digest()
    return given.signatures.some((each) => timingSafeEqual(each, expected))
  })
}

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

export function hasValidSignature({ bytes, header = '', secrets, now }: SignedBytes): boolean {
  if (header.length > headerCharsMax) return false
  const parts = header.split(',').map((part) => part.split('='))
  const [time, ...furtherTimes] = parts.filter(([name]) => name?.trim() === 't').map(([, value]) => value)
  if (time === undefined || furtherTimes.length > 0 || !/^\d{1,12}$/.test(time)) return false
  if (Math.abs(now.getTime() / 1_000 - Number(time)) > toleranceSeconds) return false
  const given = parts
    .filter(([name, value]) => name?.trim() === 'v1' && /^[0-9a-f]{64}$/.test(value ?? ''))
    .map(([, value]) => Buffer.from(value ?? '', 'hex'))
  return secrets.some((secret) => {
    const expected = createHmac('sha256', secret).update(`${time}.`).update(bytes).digest()
    return given.some((each) => timingSafeEqual(each, expected))
  })
}

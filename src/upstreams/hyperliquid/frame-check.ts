import { parseJson } from '#kernel/wire/json.ts'

/**
 * Checks frames of the venue's web socket before the client library reads them. The library trusts the form of
 * its frames, and an exception in the listener of an event ends the process.
 */

const isObject = (value: unknown): value is object => typeof value === 'object' && value !== null

/** Returns false for a frame that the library ignores or cannot read. */
export function isReadableFrame(payload: unknown): boolean {
  if (typeof payload !== 'string') return false
  const frame = parseJson(payload)
  if (!isObject(frame) || !('channel' in frame) || typeof frame.channel !== 'string') return false
  return isReadable(frame.channel, 'data' in frame ? frame.data : undefined)
}

function isReadable(channel: string, data: unknown): boolean {
  // The gateway posts no requests, so no answer to one is expected.
  if (channel === 'post') return false
  if (channel === 'subscriptionResponse') return isObject(data)
  return channel !== 'error' || isReadableError(data)
}

/** The library parses what is between the first and the last brace of an error as the refused request. */
function isReadableError(data: unknown): boolean {
  if (typeof data !== 'string') return false
  const echo = /{.*}/.exec(data)
  return echo === null || isObject(parseJson(echo[0]))
}

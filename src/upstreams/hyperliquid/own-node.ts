import { Fault } from '#kernel/contract/fault.ts'
import type { Net } from '#kernel/wire/net.ts'
import { type InfoAnswer, type InfoType, type OnSkipped, parseInfo } from './wire.ts'

/** The info server of an operator's own node, which has no rate limit; the venue answers what it cannot. */

type OwnNodeOptions = { url: string | undefined; net: Net; nowMs: () => number }
export type OwnNode = {
  /** Returns undefined if the node gives no current answer of a known form; the caller then asks the venue. */
  ask<K extends InfoType>(
    type: K,
    fields: Record<string, unknown>,
    onSkipped?: OnSkipped,
  ): Promise<InfoAnswer<K> | undefined>
}

const served: ReadonlySet<InfoType> = new Set<InfoType>([
  'clearinghouseState',
  'spotClearinghouseState',
  'frontendOpenOrders',
  'activeAssetData',
  'extraAgents',
  'userRole',
  'userRateLimit',
])
const maxBytes = 8 * 1024 * 1024
/** This is short, because the request to the venue follows it. */
const timeoutMs = 2_000
/** Together with the age of the check, this is the read lag that every record of the venue may have. */
const clockDifferenceMaxMs = 4_000
const checkMaxAgeMs = 1_000
/** How long a type that failed is requested only from the venue. */
const failedForMs = 5_000

export function createOwnNode({ url, net, nowMs }: OwnNodeOptions): OwnNode {
  const failedUntilMs = new Map<InfoType, number>()
  let checked: { isCurrent: boolean; atMs: number } | undefined

  const noteTime = ({ time }: InfoAnswer<'clearinghouseState'>): boolean => {
    const atMs = nowMs()
    checked = { isCurrent: Math.abs(atMs - time) <= clockDifferenceMaxMs, atMs }
    return checked.isCurrent
  }

  const read = async <K extends InfoType>(
    type: K,
    fields: Record<string, unknown>,
    onSkipped?: OnSkipped,
  ): Promise<InfoAnswer<K> | undefined> => {
    if ((failedUntilMs.get(type) ?? 0) > nowMs()) return undefined
    try {
      const { status, body } = await net.fetch({
        url: `${url}/info`,
        method: 'POST',
        headers: { 'content-type': 'application/json', accept: 'application/json' },
        body: JSON.stringify({ type, ...fields }),
        timeoutMs,
        maxBytes,
      })
      if (status === 200) return parseInfo(type, body, onSkipped)
    } catch (fault) {
      if (!(fault instanceof Fault)) throw fault
    }
    failedUntilMs.set(type, nowMs() + failedForMs)
    return undefined
  }

  /** Only the account state has the time of the node's state, so it is read for the other types too. */
  const isCurrent = async (user: unknown): Promise<boolean> => {
    if (checked && nowMs() - checked.atMs < checkMaxAgeMs) return checked.isCurrent
    const state = await read('clearinghouseState', { user })
    return state !== undefined && noteTime(state)
  }

  return {
    async ask(type, fields, onSkipped) {
      if (url === undefined || !served.has(type)) return undefined
      if (type === 'clearinghouseState') {
        const state = await read('clearinghouseState', fields, onSkipped)
        return state && noteTime(state) ? (state as InfoAnswer<typeof type>) : undefined
      }
      // The node is checked before the read, so that the answer is at least as recent.
      return (await isCurrent(fields.user)) ? read(type, fields, onSkipped) : undefined
    },
  }
}

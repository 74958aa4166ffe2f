import { Fault } from '#kernel/contract/fault.ts'
import type { Net } from '#kernel/wire/upstream-http.ts'
import { type InfoAnswer, type InfoType, type OnSkipped, parseInfo } from './wire.ts'

/** Asks the info server of an operator's own node, which has no rate limit; the venue answers all else. */

type OwnNodeOptions = { url: string | undefined; net: Net; nowMs: () => number }
export type OwnNode = {
  /**
   * Returns the node's answer; undefined if it is not current or of an unknown form, so that the venue is asked.
   */
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
/** A request to the own node has a short time limit, because the request to the venue follows it. */
const timeoutMs = 2_000
/**
 * The largest accepted difference between the node's clock and this machine's. An answer of the node may be outdated by
 * this time plus the age of the last check.
 */
const clockDifferenceMaxMs = 4_000
const checkMaxAgeMs = 1_000
/** How long a type of request that failed at the node is sent only to the venue. */
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

  /**
   * Checks that the node is current. Only the reply with the account state contains a time, so the account state is
   * read first for all other types.
   */
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

import type { Transact } from '#durable/transactions.ts'
import { Fault } from '#kernel/fault.ts'
import type { Queryable } from '#store/query.ts'
import type { Hyperliquid } from '#upstreams/hyperliquid/hyperliquid.ts'
import { accountFor, type VenueAccount, withoutBalances } from './account-store.ts'
import {
  balancesSeen,
  type Difference,
  differences,
  isPosition,
  positionPlace,
  sentenceOf,
  spotPlace,
} from './agreement.ts'
import type { Facts, Ingest } from './ingest.ts'
import { paged } from './paged.ts'
import * as record from './record-store.ts'

/**
 * One look at one account: what the venue says that it holds, against what its fills, fundings and transfers add up
 * to. A cheap question comes first, and only a difference asks for the lists that may explain it.
 */

export type Drift = {
  code: 'foreign_fill' | 'foreign_transfer' | 'position' | 'balance' | 'order_outcome'
  reason: string
}
export type Look =
  | { is: 'agreed'; atMs: number }
  | { is: 'apart'; found: Difference[]; atMs: number; drift: Drift }
  | { is: 'certain'; drift: Drift }
  /** Two things happened in one moment of the venue's clock: nothing can be said of it. */
  | { is: 'blurred' }

type Needs = {
  on: Queryable
  transact: Transact
  venue: Pick<
    Hyperliquid,
    'account' | 'spotHoldings' | 'fillsSince' | 'fundingSince' | 'ledgerSince' | 'accountMode'
  >
  ingest: Ingest
}

/** The venue may tell of a moment a little after it has passed. */
const overlapMs = 5_000
const outcomeMs = 24 * 3_600_000
const entriesMost = 2_000
const separateModes = ['default', 'disabled']

export function looking({ on, transact, venue, ingest }: Needs) {
  const see = async ({ account, balances }: Pick<VenueAccount, 'account' | 'balances'>) => {
    const [state, spot] = await Promise.all([
      venue.account(account),
      balances ? venue.spotHoldings(account) : Promise.resolve({ balances: [], unread: [] }),
    ])
    const unread = [
      ...state.unread.map((symbol) => symbol && positionPlace(symbol)),
      ...spot.unread.map((token) => token && spotPlace(token)),
    ]
    if (unread.includes(null))
      throw new Fault(
        'unavailable',
        'Hyperliquid shows a position or a balance of which not even the name is known',
      )
    return { atMs: state.timeMs, places: balancesSeen(state, spot.balances, { balances }), unread }
  }

  const readFills = (account: string, sinceMs: number) =>
    paged((from) => venue.fillsSince(account, from), sinceMs, 'fills')
  const readFillsOf = async (account: string, sinceMs: number): Promise<Facts> => ({
    fills: await readFills(account, sinceMs),
  })
  const readChanges = async (account: string, sinceMs: number) => ({
    fundings: await paged((from) => venue.fundingSince(account, from), sinceMs, 'fundings'),
    updates: await paged((from) => venue.ledgerSince(account, from), sinceMs, 'updates'),
  })

  /** Where the record begins again; what it did not explain until then stays written down. */
  const anchor = async (account: VenueAccount): Promise<Look> => {
    const sinceMs = Math.max(Number(account.agreed_ms) - overlapMs, 0)
    for (const read of [readFillsOf, readChanges]) await ingest(account, await read(account.account, sinceMs))
    const balances = separateModes.includes(await venue.accountMode(account.account))
    const seen = await see({ ...account, balances })
    const fills = await readFills(account.account, seen.atMs)
    const { fundings, updates } = await readChanges(account.account, seen.atMs)
    if ([...fills, ...fundings, ...updates].some(({ atMs }) => atMs === seen.atMs)) return { is: 'blurred' }
    await transact(async (tx) => {
      const current = await accountFor(tx, account.user_id, true)
      if (current?.state === 'lifting') {
        const { places, entries } = await record.expectedAt(tx, current, seen.atMs)
        const reason = `lifted by ${current.lifted_by ?? 'nobody'}: ${current.reason ?? ''}`
        const found = differences(places, seen.places, entries)
        await record.adjust(tx, account, found, { kind: 'lifted', reason, atMs: seen.atMs })
      }
      await record.setBaseline(tx, account, seen.places, { atMs: seen.atMs, balances })
    })
    return { is: 'agreed', atMs: seen.atMs }
  }

  const outcomes = async (account: VenueAccount, atMs: number): Promise<Look> => {
    const [wrong] = await record.contradictions(on, account, atMs - outcomeMs)
    if (!wrong) return { is: 'agreed', atMs }
    const reason = `task ${wrong.task_id} says ${wrong.said}, and ${wrong.filled} was filled`
    return { is: 'apart', found: [], atMs, drift: { code: 'order_outcome', reason } }
  }

  /** The baseline follows, so that what has to be added up stays short. */
  const advance = async (account: VenueAccount, atMs: number) => {
    const { places, entries } = await record.expectedAt(on, account, atMs)
    if (entries < entriesMost) return
    await transact(async (tx) => {
      const current = await accountFor(tx, account.user_id, true)
      if (current?.baseline_ms !== account.baseline_ms || current.state !== 'active') return
      await record.setBaseline(tx, account, places, { atMs, balances: account.balances })
    })
  }

  const judge = async (account: VenueAccount, seen: Awaited<ReturnType<typeof see>>) => {
    const { places, entries } = await record.expectedAt(on, account, seen.atMs)
    // Nothing is concluded of what the venue shows in a form that is not known.
    return differences(places, seen.places, entries).filter(({ place }) => !seen.unread.includes(place))
  }

  /** With one balance for both sides only positions can be compared. */
  const comparable = async (account: VenueAccount, found: readonly Difference[]): Promise<Difference[]> => {
    if (!account.balances || found.every(isPosition)) return [...found]
    if (separateModes.includes(await venue.accountMode(account.account))) return [...found]
    await withoutBalances(on, account)
    return found.filter(isPosition)
  }

  return {
    /** `thorough`: the lists are read although nothing seems to be missing, as after a gap of the stream. */
    async look(account: VenueAccount, { thorough = false } = {}): Promise<Look> {
      if (account.state === 'lifting') return anchor(account)
      const seen = await see(account)
      const sinceMs = Math.max(Number(account.agreed_ms) - overlapMs, 0)
      let found = await judge(account, seen)
      for (const read of [readFillsOf, readChanges]) {
        if (found.length === 0 && !(thorough && read === readFillsOf)) break
        const foreign = await ingest(account, await read(account.account, sinceMs))
        if (foreign?.isCertain) return { is: 'certain', drift: foreign }
        if (foreign) return { is: 'apart', found: [], atMs: seen.atMs, drift: foreign }
        found = await judge(account, seen)
      }
      found = await comparable(account, found)
      if (found.length > 0) {
        const code = found.some(isPosition) ? 'position' : 'balance'
        return { is: 'apart', found, atMs: seen.atMs, drift: { code, reason: sentenceOf(found) } }
      }
      const result = await outcomes(account, seen.atMs)
      if (result.is === 'agreed') await advance(account, seen.atMs)
      return result
    },

    /** Only what happened, where a judgement was made already. */
    async follow(account: VenueAccount): Promise<void> {
      const sinceMs = Math.max(await record.lastFillMs(on, account), Number(account.agreed_ms)) - overlapMs
      await ingest(account, await readFillsOf(account.account, Math.max(sinceMs, 0)))
    },
  }
}
export type Looking = ReturnType<typeof looking>

import type { TaskQueries } from '#durable/task/task-queries.ts'
import type { contract as perp } from '#features/perp/contract.ts'
import type { ordersEntries } from '#features/perp/orders-contract.ts'
import type { contract as spotVenue } from '#features/spot-venue/contract.ts'
import type { HoldingView } from '#features/wallets/contract.ts'
import type { HoldingsAnswer } from '#features/wallets/holdings.ts'
import { withTimeLimit } from '#kernel/async/time-limit.ts'
import type { Clock } from '#kernel/clock.ts'
import type { Caller } from '#kernel/contract/caller.ts'
import { Fault } from '#kernel/contract/fault.ts'
import { implement, type Operation, type OutputOf } from '#kernel/contract/operation.ts'
import { contract, type PartName, type PortfolioView, partNames, pendingMax } from './contract.ts'
import { inFlightOf, type Moved } from './in-flight.ts'
import { type Held, type Part, sumsOf, worth } from './sums.ts'

/** Sums up what other operations read; a part that does not answer in time is named, and the others are summed. */

type PerpOrders = OutputOf<(typeof ordersEntries)['orders']>
type SetupStatus = OutputOf<(typeof perp)['entries']['setupStatus']>
type SpotOrders = OutputOf<(typeof spotVenue)['entries']['orders']>

export type PortfolioReads = {
  holdings(caller: Caller): Promise<HoldingsAnswer>
  /** The reads of the venue; undefined if no venue is served. */
  venue:
    | {
        chainId: string
        name: string
        perp(caller: Caller): Promise<PerpOrders>
        setup(caller: Caller): Promise<SetupStatus>
        spot(caller: Caller): Promise<SpotOrders>
      }
    | undefined
  /** The parts that the holdings have. */
  held: readonly PartName[]
}
export type PortfolioDeps = {
  reads: () => PortfolioReads
  tasks: Pick<TaskQueries, 'list'>
  /** Whether a task of this kind moves money by itself; the orders of a chat are tasks of their own. */
  isMoneyKind: (kind: string) => boolean
  /** Returns the price of a token in USD; undefined if it has none. */
  priceOf: (token: Moved) => Promise<string | undefined>
  fees: { venueWithdrawalUsd: string }
  clock: Clock
}

const partMs = 8_000

type Reading = { parts: Part[]; unread: PortfolioView['unread'] }
type Unread = PortfolioView['unread'][number]

/** Reads parts together; if they cannot be read, each is named with the reason. */
async function readOr(names: readonly PartName[], read: () => Promise<Reading>): Promise<Reading> {
  const nothing = (message: string): Reading => ({
    parts: names.map((place) => ({ place, asOf: undefined, held: [] })),
    unread: names.map((place) => ({ place, chain_id: null, message })),
  })
  try {
    return (await withTimeLimit(read(), partMs)) ?? nothing('It did not answer in time')
  } catch (fault) {
    if (!(fault instanceof Fault)) throw fault
    return nothing(fault.message)
  }
}

const partOfHolding = ({ kind, protocol }: HoldingView): PartName =>
  kind === 'earn_share' ? 'vault' : protocol === null ? 'wallets' : 'predictions'

const sharesOfOutcomes = { symbol: 'shares', name: 'Shares of outcomes', amount: undefined }

function fromHoldings(
  { holdings, as_of: asOf, chains, errors }: HoldingsAnswer,
  served: readonly PartName[],
): Reading {
  const rows = holdings.map(
    (row): Held => ({
      place: partOfHolding(row),
      chainId: row.chain_id,
      chainName: row.chain_name,
      ...(row.kind === 'outcome_token'
        ? sharesOfOutcomes
        : { symbol: row.symbol, name: row.name, amount: row.balance }),
      valueUsd: row.value_usd,
    }),
  )
  // Only if the source of prices does not answer has nothing of the wallets a price.
  const isPriceless = rows.every(({ valueUsd }) => valueUsd === null)
  // A stale chain is as old as its last reading.
  const oldest = [asOf, ...chains.flatMap(({ as_of }) => as_of ?? [])].toSorted()[0]
  return {
    parts: served.map((place) => ({ place, asOf: oldest, held: rows.filter((row) => row.place === place) })),
    unread: errors.map(({ chain_id, message }) => ({
      place: chain_id === null && !isPriceless ? 'predictions' : 'wallets',
      chain_id,
      message,
    })),
  }
}

async function readVenue(venue: NonNullable<PortfolioReads['venue']>, caller: Caller): Promise<Reading> {
  const [perp, setup, spot] = await Promise.all([venue.perp(caller), venue.setup(caller), venue.spot(caller)])
  const chain = { chainId: venue.chainId, chainName: venue.name }
  const usdc = { symbol: 'USDC', name: 'USD Coin' }
  const value = perp.account.account_value_usd
  // In a unified account one balance of USDC serves both sides, and the perp side shows it.
  const isShared = setup.account_mode === 'unified' || setup.account_mode === 'portfolio'
  const balances = spot.balances.filter(({ asset }) => !(isShared && asset === 'USDC'))
  const isSomething = (amount: string) => Number(amount) !== 0
  return {
    parts: [
      {
        place: 'perp',
        asOf: perp.as_of,
        held: isSomething(value)
          ? [{ place: 'perp', ...chain, ...usdc, amount: value, valueUsd: value }]
          : [],
      },
      {
        place: 'spot',
        asOf: spot.as_of,
        held: balances
          .filter(({ total }) => isSomething(total))
          .map(({ asset, total }): Held => {
            const price = asset === 'USDC' ? '1' : spot.mark_prices[asset]
            const valueUsd = price === undefined ? null : worth(total, price)
            return { place: 'spot', ...chain, symbol: asset, name: asset, amount: total, valueUsd }
          }),
      },
    ],
    unread: [],
  }
}

type Flying = { held: Held[]; pending: PortfolioView['pending']; isKnown: boolean }

async function readInFlight(
  { tasks, isMoneyKind, priceOf, fees }: Omit<PortfolioDeps, 'reads' | 'clock'>,
  userId: string,
): Promise<Flying> {
  const pages = await Promise.all(
    (['running', 'pending'] as const).map((status) =>
      tasks.list(userId, { skip: 0, limit: pendingMax, status }),
    ),
  )
  const live = pages
    .flatMap((page) => page.tasks)
    .filter(({ kind, data }) => isMoneyKind(kind) || data.balance_changes !== undefined)
  const rows = await Promise.all(
    live.map(async (task) => {
      const found = inFlightOf(task, fees)
      const held: Held[] =
        found === 'unknown'
          ? []
          : 'usd' in found
            ? [dollars(found.usd)]
            : await Promise.all(found.tokens.map(priced(priceOf)))
      const isKnown = found !== 'unknown' && held.every(({ valueUsd }) => valueUsd !== null)
      const [sum] = sumsOf([{ place: 'in_flight', asOf: '', held }]).parts
      return { held, isKnown, task, valueUsd: isKnown ? (sum?.value_usd ?? '0') : null }
    }),
  )
  return {
    held: rows.flatMap(({ held }) => held),
    isKnown: rows.every(({ isKnown }) => isKnown) && pages.every(({ total }) => total <= pendingMax),
    pending: rows
      .map(({ task, valueUsd }) => ({
        task_id: task.id,
        kind: task.kind,
        state: task.state,
        value_usd: valueUsd,
        created_at: task.created_at.toISOString(),
      }))
      .toSorted((a, b) => b.created_at.localeCompare(a.created_at))
      .slice(0, pendingMax),
  }
}

const flying = { place: 'in_flight', chainId: null, chainName: 'In flight' } as const
const dollars = (usd: string): Held => ({
  ...flying,
  symbol: 'USDC',
  name: 'USD Coin',
  amount: usd,
  valueUsd: usd,
})
const priced =
  (priceOf: PortfolioDeps['priceOf']) =>
  async (token: Moved): Promise<Held> => {
    const price = await priceOf(token)
    const { symbol, amount } = token
    const valueUsd = price === undefined ? null : worth(amount, price)
    return { ...flying, symbol, name: symbol, amount, valueUsd }
  }

export function createPortfolio(deps: PortfolioDeps): Operation[] {
  const { reads, clock } = deps
  return implement(contract, {
    async show(_input, caller) {
      const own = reads()
      const { venue } = own
      let flight: Flying = { held: [], pending: [], isKnown: false }
      const [wallets, atVenue, inFlight] = await Promise.all([
        readOr(own.held, async () => fromHoldings(await own.holdings(caller), own.held)),
        venue ? readOr(['perp', 'spot'], () => readVenue(venue, caller)) : { parts: [], unread: [] },
        readOr(['in_flight'], async () => {
          flight = await readInFlight(deps, caller.userId)
          return {
            parts: [{ place: 'in_flight', asOf: clock.now().toISOString(), held: flight.held }],
            unread: [],
          }
        }),
      ])
      const found = [wallets, atVenue, inFlight]
      const parts = found
        .flatMap((each) => each.parts)
        .toSorted((a, b) => partNames.indexOf(a.place) - partNames.indexOf(b.place))
      const unread: Unread[] = found.flatMap((each) => each.unread)
      const sums = sumsOf(parts)
      const times = parts.flatMap(({ asOf }) => asOf ?? []).toSorted()
      return {
        ...sums,
        complete: unread.length === 0 && sums.unpriced.length === 0 && flight.isKnown,
        as_of: times[0] ?? clock.now().toISOString(),
        unread,
        pending: flight.pending,
      }
    },
  })
}

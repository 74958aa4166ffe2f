import type { Account, Fill, Funding, LedgerUpdate, Order, State } from './state.ts'
import type { Venue } from './venue.ts'

/** An account after one change. Of lists that only grow, the last entry is stored. */
type Version = {
  atMs: number
  nowMs: number
  nextOid: number
  account: Pick<Account, 'raw' | 'positions' | 'leverage' | 'spot' | 'open' | 'abstraction'>
  openOrders: Map<number, Order>
  fill: Fill | undefined
  funding: Funding | undefined
  update: LedgerUpdate | undefined
}

export type AccountHistory = {
  /** Begins recording; before that and after `stop` every account is shown in its current state. */
  start: () => void
  stop: () => void
  /** Makes all earlier changes visible to every read. */
  catchUp: () => void
  recordChanges: (users: Iterable<string>) => void
  /** The venue as it was `lagMs` ago for the given user. Prices are current. */
  viewAt: (user: string, lagMs: number) => Venue
}

const copyMap = <K, V extends object>(from: ReadonlyMap<K, V>): Map<K, V> =>
  new Map([...from].map(([key, value]) => [key, { ...value }]))

const versionOf = ({ state }: Venue, account: Account, atMs: number): Version => {
  const { raw, abstraction } = account
  const openOrders = new Map<number, Order>()
  for (const oid of account.open) {
    const order = state.orders.get(oid)
    if (order) openOrders.set(oid, { ...order, children: [...order.children] })
  }
  return {
    atMs,
    nowMs: state.nowMs,
    nextOid: state.nextOid,
    account: {
      raw,
      abstraction,
      positions: copyMap(account.positions),
      leverage: copyMap(account.leverage),
      spot: copyMap(account.spot),
      open: new Set(account.open),
    },
    openOrders,
    fill: account.fills.at(-1),
    funding: account.fundings.at(-1),
    update: account.ledger.at(-1),
  }
}

/** An order that had ended by then has not changed since, so the current one is returned. */
const pastOrder = (state: State, version: Version, oid: number): Order | undefined =>
  oid >= version.nextOid ? undefined : (version.openOrders.get(oid) ?? state.orders.get(oid))

const upTo = <T>(list: readonly T[], last: T | undefined): T[] =>
  last === undefined ? [] : list.slice(0, list.lastIndexOf(last) + 1)

const pastVenue = (venue: Venue, account: Account, version: Version, lagMs: number): Venue => {
  const { state } = venue
  const view: Account = {
    ...account,
    ...version.account,
    get fills() {
      return upTo(account.fills, version.fill)
    },
    get fundings() {
      return upTo(account.fundings, version.funding)
    },
    get ledger() {
      return upTo(account.ledger, version.update)
    },
    get orders() {
      return account.orders.filter((oid) => oid < version.nextOid)
    },
  }
  // Views only look up orders and accounts, and copying each of them for a read would be slow.
  const accounts = { get: (address: string) => (address === account.address ? view : undefined) }
  const orders = { get: (oid: number) => pastOrder(state, version, oid) }
  const past = {
    ...state,
    nowMs: Math.max(version.nowMs, state.nowMs - Math.round(lagMs)),
    accounts: accounts as State['accounts'],
    orders: orders as State['orders'],
  }
  return { ...venue, state: past }
}

export const createAccountHistory = (
  venue: Venue,
  longestLagMs: () => number,
  clockMs: () => number,
): AccountHistory => {
  const histories = new Map<string, Version[]>()
  let recording = false

  const recordVersion = (user: string, atMs: number): void => {
    const account = venue.state.accounts.get(user)
    if (!account || account.isMarketMaker) return
    const known = histories.get(user) ?? []
    // The newest of the entries that are too old is what the oldest read returns.
    const horizon = atMs - longestLagMs()
    while (known.length > 1 && (known[1] as Version).atMs <= horizon) known.shift()
    const last = known.at(-1)
    if (last?.atMs === atMs) known.pop()
    known.push(versionOf(venue, account, atMs))
    histories.set(user, known)
  }

  const begin = (): void => {
    histories.clear()
    for (const user of venue.state.accounts.keys()) recordVersion(user, Number.NEGATIVE_INFINITY)
  }

  return {
    start: () => {
      if (recording) return
      recording = true
      begin()
    },
    catchUp: () => {
      if (recording) begin()
    },
    stop: () => {
      recording = false
      histories.clear()
    },
    recordChanges: (users) => {
      if (recording) for (const user of users) recordVersion(user, clockMs())
    },
    viewAt: (user, lagMs) => {
      const account = venue.state.accounts.get(user)
      const versions = histories.get(user)
      const newest = versions?.at(-1)
      const atMs = clockMs() - lagMs
      if (!recording || !account || !versions || !newest || newest.atMs <= atMs) return venue
      const version = versions.findLast((each) => each.atMs <= atMs)
      if (version) return pastVenue(venue, account, version, lagMs)
      // Opened within the lag: not known yet.
      return { ...venue, state: { ...venue.state, accounts: new Map() } }
    },
  }
}

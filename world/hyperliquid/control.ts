import type { Server } from 'node:http'
import {
  type ControlRoute,
  type ControlRoutes,
  commonControls,
  controlNumber as number,
  serveControl as serveRoutes,
} from '#world/venue-core/control-server.ts'
import type { InjectedFailures } from '#world/venue-core/injected-failures.ts'
import { RequestError } from '#world/venue-core/request-error.ts'
import type { AccountHistory } from './account-history.ts'
import { canonicalAction } from './actions.ts'
import type { Bridge } from './bridge.ts'
import { parseUnits, priceText, unitsText } from './decimal.ts'
import type { Engine } from './engine.ts'
import { crossSummary } from './margin.ts'
import { marketNamed, markets } from './markets.ts'
import type { OrderWire } from './place-order.ts'
import type { RateBudget } from './rate-budget.ts'
import { modeOf, type RealismControl, readRealism } from './realism.ts'
import { MalformedError } from './schema.ts'
import { conservation } from './settlement.ts'
import type { Settings } from './state.ts'
import type { Stream } from './stream.ts'
import { stateOf } from './venue.ts'
import { fillView, fundingView, openOrder } from './views.ts'

export type ControlDeps = {
  engine: Engine
  faults: InjectedFailures
  rateBudget: RateBudget
  stream: Stream
  bridge: Bridge | undefined
  realismControl: RealismControl
  history: AccountHistory
}

const address = (value: unknown): string => {
  if (typeof value === 'string' && /^0x[0-9a-fA-F]{40}$/.test(value)) return value.toLowerCase()
  throw new RequestError('user must be an address')
}

const units = (value: unknown): bigint => {
  const parsed =
    typeof value === 'string' || typeof value === 'number' ? parseUnits(String(value), 8) : undefined
  if (parsed === undefined || parsed <= 0n) throw new RequestError('amount must be a decimal above zero')
  return parsed
}

/** The venue's own record of an account, in memory form: tests compare everything else with it. */
const accountSnapshot = ({ engine }: ControlDeps, user: string) => {
  const { venue } = engine
  const account = venue.state.accounts.get(user)
  if (!account) return null
  const cross = crossSummary(account, (asset) => stateOf(venue, asset).mark)
  return {
    address: user,
    rawUsd: unitsText(account.raw),
    crossValueUsd: unitsText(cross.value),
    spot: Object.fromEntries(
      [...account.spot].map(([token, { total, hold }]) => [
        token,
        { total: unitsText(total), hold: unitsText(hold) },
      ]),
    ),
    positions: [...account.positions.values()].map(({ asset, size, cost, raw, leverage }) => ({
      coin: markets.find((market) => market.asset === asset)?.coin,
      asset,
      lots: size,
      costUsd: unitsText(cost),
      rawUsd: unitsText(raw),
      leverage,
    })),
    fills: account.fills.map(fillView),
    fundings: account.fundings.map(fundingView),
    ledger: account.ledger,
    requests: account.requests,
    orders: account.orders.map((oid) => {
      const order = venue.state.orders.get(oid)
      return order
        ? { ...openOrder(order), status: order.status, phase: order.phase, spentUsd: unitsText(order.spent) }
        : null
    }),
  }
}

const ledgerSums = (deps: ControlDeps) => {
  const { perp, spot, open } = conservation(deps.engine.venue)
  const { fees, builderFees, flows } = deps.engine.venue.state
  return {
    conservation: {
      perp: unitsText(perp),
      spot: Object.fromEntries(Object.entries(spot).map(([token, value]) => [token, unitsText(value)])),
      open,
    },
    fees: {
      perp: unitsText(fees.perp),
      bridge: unitsText(fees.bridge),
      rounding: unitsText(fees.rounding),
      spot: Object.fromEntries([...fees.spot].map(([token, value]) => [token, unitsText(value)])),
      builders: Object.fromEntries([...builderFees].map(([builder, value]) => [builder, unitsText(value)])),
    },
    flows: { perp: unitsText(flows.perp) },
  }
}

/** Every order that carries the client id, over all accounts. */
const byCloid = ({ engine }: ControlDeps, cloid: string) =>
  [...engine.venue.state.orders.values()]
    .filter((order) => order.cloid === cloid)
    .map((order) => ({
      ...openOrder(order),
      user: order.user,
      status: order.status,
      spentUsd: unitsText(order.spent),
    }))

const effects: ControlRoute<ControlDeps> = (deps, _body, query) => {
  const user = query.get('user')
  const cloid = query.get('cloid')
  const { state } = deps.engine.venue
  // Only the sums, for tests that poll often.
  const isSumsOnly = query.get('accounts') === 'none'
  const users = isSumsOnly
    ? []
    : user
      ? [address(user)]
      : [...state.accounts.values()]
          .filter(({ isMarketMaker }) => !isMarketMaker)
          .map((account) => account.address)
  return {
    nowMs: state.nowMs,
    sequence: state.sequence,
    ...ledgerSums(deps),
    ...(cloid ? { orders: byCloid(deps, cloid.toLowerCase()) } : {}),
    accounts: users.map((who) => accountSnapshot(deps, who)).filter((snapshot) => snapshot !== null),
    agents: [...state.agents].map(([agent, facts]) => ({ address: agent, ...facts })),
    payouts: state.bridge.payouts.map(({ attempt: _attempt, ...payout }) => ({
      ...payout,
      amount: unitsText(payout.amount),
    })),
  }
}

/** Orders of the account's owner through another client, in the form of the wire. */
const foreignOrders = (orders: unknown): OrderWire[] => {
  try {
    return (canonicalAction({ type: 'order', orders, grouping: 'na' }) as unknown as { orders: OrderWire[] })
      .orders
  } catch (error) {
    if (error instanceof MalformedError)
      throw new RequestError('orders must be a list in the form of the wire')
    throw error
  }
}

const settingNames: readonly (keyof Settings)[] = [
  'walking',
  'spotTriggers',
  'scheduleCancelVolumeUsd',
  'requestsPerAddress',
  'withdrawalFeeUsd',
  'wsConnectionsPerAddress',
  'wsNewPerMinute',
  'wsUsersPerAddress',
]

const routes: ControlRoutes<ControlDeps> = {
  'GET /effects': effects,
  'GET /markets': ({ engine }) =>
    markets.map(({ asset, coin }) => {
      const { oracle, mark, pinned } = stateOf(engine.venue, asset)
      return { asset, coin, oracle: priceText(oracle), mark: priceText(mark), pinned }
    }),
  'POST /price': ({ engine }, { coin, price, pin }) => {
    engine.submit({ kind: 'price', coin: String(coin), usd: number(price, 'price'), pin: pin !== false })
    const market = marketNamed(String(coin))
    return { mark: market ? priceText(stateOf(engine.venue, market.asset).mark) : null }
  },
  'POST /unpin': ({ engine }, { coin }) => {
    engine.submit({ kind: 'unpin', coin: String(coin) })
    return {}
  },
  'POST /advance': ({ engine }, { ms }) => {
    const by = number(ms, 'ms')
    if (by < 0 || by > 400 * 86_400_000) throw new RequestError('ms must be between 0 and 400 days')
    engine.advance(by)
    return { nowMs: engine.venue.state.nowMs }
  },
  'POST /funding': ({ engine }) => {
    engine.submit({ kind: 'funding' })
    return {}
  },
  'POST /credit': ({ engine }, { user, coin, amount }) => {
    engine.submit({ kind: 'credit', user: address(user), coin: String(coin ?? 'perp'), units: units(amount) })
    return {}
  },
  'POST /agents/expire': ({ engine }, { address: agent }) => {
    engine.submit({ kind: 'expireAgent', address: address(agent) })
    return {}
  },
  'POST /settings': ({ engine }, body) => {
    const settings = Object.fromEntries(
      settingNames.filter((name) => name in body).map((name) => [name, body[name]]),
    )
    engine.submit({ kind: 'settings', settings: settings as Partial<Settings> })
    return engine.venue.state.settings
  },
  'POST /limits': ({ rateBudget }, { weightPerMinute }) => {
    rateBudget.limit(number(weightPerMinute, 'weightPerMinute'))
    return {}
  },
  'GET /realism': ({ realismControl }) => realismControl.current(),
  'POST /realism': ({ realismControl }, body) => {
    realismControl.set(readRealism(body, realismControl.current()), body)
    return realismControl.current()
  },
  'POST /realism/catch-up': ({ history }) => {
    history.catchUp()
    return {}
  },
  'POST /account-mode': ({ engine }, { user, mode }) => {
    engine.submit({ kind: 'accountMode', user: address(user), mode: modeOf('mode', mode) })
    return {}
  },
  'POST /foreign/orders': ({ engine }, { user, orders }) => {
    engine.submit({ kind: 'foreignOrders', user: address(user), orders: foreignOrders(orders) })
    return {}
  },
  'POST /foreign/cancel': ({ engine }, { user, oid }) => {
    engine.submit({ kind: 'foreignCancel', user: address(user), oid: number(oid, 'oid') })
    return {}
  },
  'POST /foreign/transfer': ({ engine }, { user, coin, amount }) => {
    engine.submit({
      kind: 'foreignTransfer',
      user: address(user),
      coin: String(coin ?? 'USDC'),
      units: units(amount),
    })
    return {}
  },
  'POST /bridge/scan': async ({ bridge }) => {
    if (!bridge) throw new RequestError('No Arbitrum node was given')
    await bridge.runOnce()
    return {}
  },
}

const plainJson = (value: unknown): string =>
  JSON.stringify(value, (_key, item) => (typeof item === 'bigint' ? unitsText(item) : item))

export const serveControl = (deps: ControlDeps): Server =>
  serveRoutes({ routes: { ...commonControls, ...routes }, deps, stringify: plainJson })
